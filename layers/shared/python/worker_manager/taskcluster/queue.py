"""How the library asks a task queue what there is to do and who was heard of.

``QueueClient`` is all that the rest knows; a real Taskcluster queue and the embedded one are
reached alike, by ``TaskclusterQueue``.  A queue that does not answer in full is an error and
never a number: its facts are unknown, which is neither "no work" nor "inactive".
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import mohawk  # type: ignore[import-untyped]
import requests

from worker_manager.core.activity import Activity, QueueCounts
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.moments import from_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE_SIZE = 1000
"""Workers or tasks a page; the most that a queue gives."""
MAX_PAGES = 1000
DEFAULT_TIMEOUT = timedelta(seconds=10)


class QueueClient(Protocol):
    """What planning and judging need of a queue.  All raise ``QueueUnavailableError``."""

    def counts(self, pool_id: str) -> QueueCounts:
        """Tasks waiting for this pool and tasks its workers hold."""
        ...

    def activity(self, pool_id: str) -> Mapping[tuple[str, str], Activity]:
        """By (worker group, worker id), every worker of the pool that the queue remembers.

        A worker that is not in it was not heard of for a day, or never.
        """
        ...

    def busy(self, pool_id: str) -> frozenset[tuple[str, str]]:
        """By (worker group, worker id), the workers that hold a task now."""
        ...


class TaskclusterQueue:
    """A queue behind a Taskcluster root URL.

    The stock client names the URLs and signs; its own HTTP call has no timeout (the session it
    is given goes unused, as of 113.2.0) and sleeps between retries, so the requests are made
    here: each within ``timeout``, and once more only where the connection was lost, as happens
    to one that was kept while a function slept.  Safe to use from threads.
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

    def counts(self, pool_id: str) -> QueueCounts:
        """``taskQueueCounts``.  Raises ``QueueUnavailableError``."""
        with _nothing_but_facts("counts", pool_id):
            answer = self._get("taskQueueCounts", {"taskQueueId": pool_id}, {})
            return QueueCounts(
                pending=int(answer["pendingTasks"]), claimed=int(answer["claimedTasks"])
            )

    def activity(self, pool_id: str) -> Mapping[tuple[str, str], Activity]:
        """``listWorkers``, to its end.  Raises ``QueueUnavailableError``."""
        provisioner_id, _, worker_type = pool_id.partition("/")
        params = {"provisionerId": provisioner_id, "workerType": worker_type}
        with _nothing_but_facts("workers", pool_id):
            return {
                _name(item): _to_activity(item)
                for item in self._pages("listWorkers", params, "workers")
            }

    def busy(self, pool_id: str) -> frozenset[tuple[str, str]]:
        """``listClaimedTasks``, to its end.  Raises ``QueueUnavailableError``."""
        with _nothing_but_facts("claimed tasks", pool_id):
            claims = self._pages("listClaimedTasks", {"taskQueueId": pool_id}, "tasks")
            return frozenset(_name(item) for item in claims)

    def _pages(
        self, method: str, params: Mapping[str, str], name: str
    ) -> Iterator[Mapping[str, Any]]:
        """All items of a list that is called ``name`` in its pages."""
        query = {"limit": str(PAGE_SIZE)}
        for _ in range(MAX_PAGES):
            page = self._get(method, params, query)
            yield from page[name]
            token = page.get("continuationToken")
            if not token:
                return
            if token == query.get("continuationToken"):
                raise ValueError("the list goes round in circles")
            query["continuationToken"] = token
        raise ValueError(f"the list has more than {MAX_PAGES} pages")

    def _get(self, method: str, params: Mapping[str, str], query: Mapping[str, str]) -> Any:
        url = self._stock_client().buildUrl(method, params=dict(params), query=dict(query))
        try:
            response = self._send(url)
        except requests.ConnectionError:
            response = self._send(url)
        response.raise_for_status()
        return response.json()

    def _send(self, url: str) -> requests.Response:
        return self._session.get(
            url,
            headers=self._signature(url),
            timeout=self._timeout_seconds,
            allow_redirects=False,
        )

    def _signature(self, url: str) -> Mapping[str, str]:
        if self._credentials is None:
            return {}
        sender = mohawk.Sender(
            credentials={
                "id": self._credentials["clientId"],
                "key": self._credentials["accessToken"],
                "algorithm": "sha256",
            },
            url=url,
            method="GET",
            content="",
            content_type="",
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


@contextmanager
def _nothing_but_facts(what: str, pool_id: str) -> Iterator[None]:
    """Whatever goes wrong on the way or in the answer, the queue's facts are unknown."""
    try:
        yield
    except (requests.RequestException, LookupError, TypeError, ValueError) as error:
        raise QueueUnavailableError(f"{what} of {pool_id}: {error}") from error


def _name(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["workerGroup"], item["workerId"]


def _to_activity(item: Mapping[str, Any]) -> Activity:
    def moment(name: str) -> datetime | None:
        return from_wire(item[name]) if item.get(name) else None

    return Activity(
        first_claim=moment("firstClaim"),
        last_active=moment("lastDateActive"),
        quarantine_until=moment("quarantineUntil"),
    )
