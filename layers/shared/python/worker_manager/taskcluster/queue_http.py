"""Requests to a Taskcluster queue, signed, each within its time.

The stock client names the URLs; its own HTTP call has no timeout (the session it is given goes
unused, as of 113.2.0) and sleeps between retries, so the requests are made here: each within
``timeout``, and once more only where the connection was lost, as happens to one that was kept while
a function slept.  Where to read next: ``queue`` and ``observed_queue``, which know what to ask.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]
import requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE_SIZE = 1000
"""Workers or tasks a page; the most that a queue gives."""
MAX_PAGES = 1000
DEFAULT_TIMEOUT = timedelta(seconds=10)


class QueueHttp:
    """A queue behind a Taskcluster root URL.

    Safe to use from threads.  Raises what ``requests`` raises, 4xx and 5xx among it, and
    ``ValueError`` for lists without an end.
    """

    def __init__(
        self,
        root_url: str,
        credentials: Mapping[str, str] | None,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        self._root_url = root_url
        self._credentials = credentials
        self._timeout_seconds = timeout.total_seconds()
        self._session = requests.Session()
        self._client: Any = None

    def close(self) -> None:
        """Drop the connections that are kept."""
        self._session.close()

    def pages(
        self, method: str, params: Mapping[str, str], name: str
    ) -> Iterator[Mapping[str, Any]]:
        """All items of a list that is called ``name`` in its pages."""
        query = {"limit": str(PAGE_SIZE)}
        for _ in range(MAX_PAGES):
            page = self.get(method, params, query)
            yield from page[name]
            token = page.get("continuationToken")
            if not token:
                return
            if token == query.get("continuationToken"):
                raise ValueError("the list goes round in circles")
            query["continuationToken"] = token
        raise ValueError(f"the list has more than {MAX_PAGES} pages")

    def get(self, method: str, params: Mapping[str, str], query: Mapping[str, str]) -> Any:
        """What a method that only reads answers."""
        url = self._stock_client().buildUrl(method, params=dict(params), query=dict(query))
        return self._answer("GET", url, "")

    def put(self, method: str, params: Mapping[str, str], body: Any) -> Any:
        """What a method answers that may be asked twice with the same body."""
        url = self._stock_client().buildUrl(method, params=dict(params), payload=body)
        return self._answer("PUT", url, json.dumps(body))

    def _answer(self, verb: str, url: str, content: str) -> Any:
        try:
            response = self._send(verb, url, content)
        except requests.ConnectionError:
            response = self._send(verb, url, content)
        response.raise_for_status()
        return response.json()

    def _send(self, verb: str, url: str, content: str) -> requests.Response:
        kind = "application/json" if content else ""
        headers = {"Content-Type": kind} if content else {}
        return self._session.request(
            verb,
            url,
            data=content.encode() if content else None,
            headers=headers | self._signature(verb, url, content, kind),
            timeout=self._timeout_seconds,
            allow_redirects=False,
        )

    def _signature(self, verb: str, url: str, content: str, kind: str) -> dict[str, str]:
        if self._credentials is None:
            return {}
        sender = mohawk.Sender(
            credentials={
                "id": self._credentials["clientId"],
                "key": self._credentials["accessToken"],
                "algorithm": "sha256",
            },
            url=url,
            method=verb,
            content=content,
            content_type=kind,
            ext=self._stock_client().makeHawkExt(),
        )
        return {"Authorization": sender.request_header}

    def _stock_client(self) -> Any:
        """The client, made when first needed: most functions never ask a queue."""
        if self._client is None:
            from taskcluster import Queue  # type: ignore[import-untyped]  # noqa: PLC0415

            options: dict[str, Any] = {"rootUrl": self._root_url, "credentials": {}}
            if self._credentials is not None:
                options["credentials"] = dict(self._credentials)
            self._client = Queue(options)
        return self._client
