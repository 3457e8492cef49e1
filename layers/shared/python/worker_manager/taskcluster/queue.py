"""How the library asks a task queue what there is to do and who was heard of.

``QueueClient`` is all that the rest knows; a real Taskcluster queue and the embedded one are
reached alike, by ``TaskclusterQueue``.  A queue that does not answer in full is an error and
never a number: its facts are unknown, which is neither "no work" nor "inactive".
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

import mohawk  # type: ignore[import-untyped]
import requests

from worker_manager.core.activity import Activity, QueueCounts, SeenWorker, WorkerHistory
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.moments import from_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from worker_manager.core.model import Json

PAGE_SIZE = 1000
"""Workers or tasks a page; the most that a queue gives."""
MAX_PAGES = 1000
DEFAULT_TIMEOUT = timedelta(seconds=10)

_OF_QUARANTINE = ("clientId", "updatedAt", "quarantineUntil", "quarantineInfo")


class QueueClient(Protocol):
    """What planning, judging and showing need of a queue.  All raise ``QueueUnavailableError``."""

    @property
    def is_ordered(self) -> bool:
        """Whether workers are listed by group and then id, as strings compare."""
        ...

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

    def worker_page(
        self, pool_id: str, token: str | None = None
    ) -> tuple[Sequence[SeenWorker], str | None]:
        """A page of the workers that the queue remembers, and the token of the next page.

        Without ``token`` the first page; the last one has none.
        """
        ...

    def worker(self, pool_id: str, group: str, worker_id: str) -> WorkerHistory | None:
        """One worker; ``None`` if it never called, or too long ago."""
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
        *,
        is_ordered: bool = False,
    ) -> None:
        """``is_ordered`` says that this queue lists workers by group and id, as ours does.

        A Taskcluster queue does so by the rules of its database's language, which may be others.
        """
        self._root_url = root_url
        self._credentials = credentials
        self.is_ordered = is_ordered
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
        with _nothing_but_facts("workers", pool_id):
            return {
                _name(item): _to_activity(item)
                for item in self._pages("listWorkers", _worker_type(pool_id), "workers")
            }

    def busy(self, pool_id: str) -> frozenset[tuple[str, str]]:
        """``listClaimedTasks``, to its end.  Raises ``QueueUnavailableError``."""
        with _nothing_but_facts("claimed tasks", pool_id):
            claims = self._pages("listClaimedTasks", {"taskQueueId": pool_id}, "tasks")
            return frozenset(_name(item) for item in claims)

    def worker_page(
        self, pool_id: str, token: str | None = None
    ) -> tuple[Sequence[SeenWorker], str | None]:
        """``listWorkers``, one page of it.  Raises ``QueueUnavailableError``."""
        query = {"limit": str(PAGE_SIZE)}
        if token is not None:
            query["continuationToken"] = token
        with _nothing_but_facts("workers", pool_id):
            page = self._get("listWorkers", _worker_type(pool_id), query)
            following = page.get("continuationToken") or None
            if following is not None and following == token:
                raise ValueError("the list goes round in circles")
            return [_to_seen(item) for item in page["workers"]], following

    def worker(self, pool_id: str, group: str, worker_id: str) -> WorkerHistory | None:
        """``getWorker``; ``None`` for a 404.  Raises ``QueueUnavailableError``."""
        params = _worker_type(pool_id) | {"workerGroup": group, "workerId": worker_id}
        with _nothing_but_facts("worker", pool_id):
            try:
                return _to_history(self._get("getWorker", params, {}))
            except requests.HTTPError as error:
                if _is_unknown(error.response):
                    return None
                raise

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


def _worker_type(pool_id: str) -> dict[str, str]:
    """A pool's id in the two parts by which older calls name it."""
    provisioner_id, _, worker_type = pool_id.partition("/")
    return {"provisionerId": provisioner_id, "workerType": worker_type}


def _is_unknown(response: requests.Response | None) -> bool:
    """Whether the queue itself says that something does not exist, and not who is in its place."""
    if response is None or response.status_code != HTTPStatus.NOT_FOUND:
        return False
    is_its_word: bool = response.json()["code"] == "ResourceNotFound"
    return is_its_word


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


def _to_seen(item: Mapping[str, Any]) -> SeenWorker:
    group, worker_id = _name(item)
    task = item.get("latestTask")
    return SeenWorker(group, worker_id, _to_activity(item), _to_run(task) if task else None)


def _to_history(item: Mapping[str, Any]) -> WorkerHistory:
    return WorkerHistory(
        activity=_to_activity(item),
        first_claim=from_wire(item["firstClaim"]),
        expires=from_wire(item["expires"]),
        recent_tasks=tuple(_to_run(task) for task in item["recentTasks"]),
        quarantine_changes=tuple(
            {name: change[name] for name in _OF_QUARANTINE}
            for change in item.get("quarantineDetails") or ()
        ),
    )


def _to_run(task: Mapping[str, Any]) -> Json:
    return {"taskId": task["taskId"], "runId": int(task["runId"])}
