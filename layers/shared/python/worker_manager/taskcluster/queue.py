"""How the library asks a task queue what there is to do and who was heard of.

``QueueClient`` is all that the rest knows; a real Taskcluster queue and the embedded one are
reached alike, by ``TaskclusterQueue``.  A queue that does not answer in full is an error and
never a number: its facts are unknown, which is neither "no work" nor "inactive".
"""

from __future__ import annotations

from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

import requests

from worker_manager.core.activity import Activity, Downtime, QueueCounts, SeenWorker, WorkerHistory
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.moments import from_wire
from worker_manager.taskcluster.queue_http import DEFAULT_TIMEOUT, PAGE_SIZE, QueueHttp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.model import Json

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
    """A queue behind a Taskcluster root URL.  Safe to use from threads."""

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
        self._http = QueueHttp(root_url, credentials, timeout)
        self.is_ordered = is_ordered

    def close(self) -> None:
        """Drop the connections that are kept."""
        self._http.close()

    def counts(self, pool_id: str) -> QueueCounts:
        """``taskQueueCounts``.  Raises ``QueueUnavailableError``."""
        with nothing_but_facts("counts", pool_id):
            answer = self._http.get("taskQueueCounts", {"taskQueueId": pool_id}, {})
            return QueueCounts(
                pending=int(answer["pendingTasks"]),
                claimed=int(answer["claimedTasks"]),
                downtime=_to_downtime(answer) if answer.get("closedUntil") else None,
            )

    def activity(self, pool_id: str) -> Mapping[tuple[str, str], Activity]:
        """``listWorkers``, to its end.  Raises ``QueueUnavailableError``."""
        with nothing_but_facts("workers", pool_id):
            return {
                _name(item): _to_activity(item)
                for item in self._http.pages("listWorkers", worker_type_of(pool_id), "workers")
            }

    def busy(self, pool_id: str) -> frozenset[tuple[str, str]]:
        """``listClaimedTasks``, to its end.  Raises ``QueueUnavailableError``."""
        with nothing_but_facts("claimed tasks", pool_id):
            claims = self._http.pages("listClaimedTasks", {"taskQueueId": pool_id}, "tasks")
            return frozenset(_name(item) for item in claims)

    def worker_page(
        self, pool_id: str, token: str | None = None
    ) -> tuple[Sequence[SeenWorker], str | None]:
        """``listWorkers``, one page of it.  Raises ``QueueUnavailableError``."""
        query = {"limit": str(PAGE_SIZE)}
        if token is not None:
            query["continuationToken"] = token
        with nothing_but_facts("workers", pool_id):
            page = self._http.get("listWorkers", worker_type_of(pool_id), query)
            following = page.get("continuationToken") or None
            if following is not None and following == token:
                raise ValueError("the list goes round in circles")
            return [to_seen(item) for item in page["workers"]], following

    def worker(self, pool_id: str, group: str, worker_id: str) -> WorkerHistory | None:
        """``getWorker``; ``None`` for a 404.  Raises ``QueueUnavailableError``."""
        params = worker_type_of(pool_id) | {"workerGroup": group, "workerId": worker_id}
        with nothing_but_facts("worker", pool_id):
            try:
                return _to_history(self._http.get("getWorker", params, {}))
            except requests.HTTPError as error:
                if is_unknown(error.response):
                    return None
                raise


@contextmanager
def nothing_but_facts(what: str, of: str) -> Iterator[None]:
    """Whatever goes wrong on the way or in the answer, the queue's facts are unknown."""
    try:
        yield
    except (requests.RequestException, LookupError, TypeError, ValueError) as error:
        raise QueueUnavailableError(f"{what} of {of}: {error}") from error


def worker_type_of(pool_id: str) -> dict[str, str]:
    """A pool's id in the two parts by which older calls name it."""
    provisioner_id, _, worker_type = pool_id.partition("/")
    return {"provisionerId": provisioner_id, "workerType": worker_type}


def is_unknown(response: requests.Response | None) -> bool:
    """Whether the queue itself says that something does not exist, and not who is in its place."""
    if response is None or response.status_code != HTTPStatus.NOT_FOUND:
        return False
    is_its_word: bool = response.json()["code"] == "ResourceNotFound"
    return is_its_word


def _name(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["workerGroup"], item["workerId"]


def _to_downtime(answer: Mapping[str, Any]) -> Downtime:
    """As ours says when it is closed; a Taskcluster queue never is."""
    since = answer.get("closedAt")
    return Downtime(
        until=from_wire(answer["closedUntil"]),
        since=from_wire(since) if since else None,
        by=answer.get("closedBy"),
        info=answer.get("closedInfo") or "",
    )


def _to_activity(item: Mapping[str, Any]) -> Activity:
    def moment(name: str) -> datetime | None:
        return from_wire(item[name]) if item.get(name) else None

    return Activity(
        first_claim=moment("firstClaim"),
        last_active=moment("lastDateActive"),
        quarantine_until=moment("quarantineUntil"),
    )


def to_seen(item: Mapping[str, Any]) -> SeenWorker:
    """One worker of a list, from the wire."""
    group, worker_id = _name(item)
    task = item.get("latestTask")
    return SeenWorker(group, worker_id, _to_activity(item), _to_run(task) if task else None)


def _to_history(item: Mapping[str, Any]) -> WorkerHistory:
    return WorkerHistory(
        activity=_to_activity(item),
        first_claim=from_wire(item["firstClaim"]) if item.get("firstClaim") else None,
        expires=from_wire(item["expires"]),
        recent_tasks=tuple(_to_run(task) for task in item["recentTasks"]),
        quarantine_changes=tuple(
            {name: change[name] for name in _OF_QUARANTINE}
            for change in item.get("quarantineDetails") or ()
        ),
    )


def _to_run(task: Mapping[str, Any]) -> Json:
    return {"taskId": task["taskId"], "runId": int(task["runId"])}
