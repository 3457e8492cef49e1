"""One contract over the fake queue and the real client, which speaks HTTP to a small server."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs, urlsplit

import mohawk  # type: ignore[import-untyped]
import pytest

from tests.fake_queue import FakeQueue
from worker_manager.core.activity import Activity, Downtime, QueueCounts, SeenWorker, WorkerHistory
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.moments import to_wire
from worker_manager.taskcluster.queue import QueueClient, TaskclusterQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POOL = "proj-x/builders"
COUNTS_PATH = "/api/queue/v1/task-queues/proj-x%2Fbuilders/counts"
WORKERS_PATH = "/api/queue/v1/provisioners/proj-x/worker-types/builders/workers"
CLAIMED_PATH = "/api/queue/v1/task-queues/proj-x%2Fbuilders/claimed"
CREDENTIALS = {"clientId": "project/x", "accessToken": "a-token-for-tests"}


@dataclass
class Service:
    """What the server answers, and what it was asked."""

    root_url: str = ""
    counts: dict[str, Any] = field(default_factory=lambda: {"pendingTasks": 0, "claimedTasks": 0})
    workers: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What ``getWorker`` answers, by the end of its path."""
    page: int = 1000
    failure: Callable[[BaseHTTPRequestHandler], None] | None = None
    paths: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    def answer(self, path: str) -> dict[str, Any]:
        url = urlsplit(path)
        if url.path == COUNTS_PATH:
            return self.counts
        if url.path.startswith(f"{WORKERS_PATH}/"):
            return self.details[url.path.removeprefix(f"{WORKERS_PATH}/")]
        name, items = {
            WORKERS_PATH: ("workers", self.workers),
            CLAIMED_PATH: ("tasks", self.claims),
        }[url.path]
        query = parse_qs(url.query)
        start = int(query.get("continuationToken", ["0"])[0])
        stop = start + min(self.page, int(query["limit"][0]))
        answer: dict[str, Any] = {name: items[start:stop]}
        return answer | {"continuationToken": str(stop)} if stop < len(items) else answer


@pytest.fixture
def service() -> Iterator[Service]:
    state = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            state.paths.append(self.path)
            state.authorizations.append(self.headers.get("Authorization"))
            if state.failure is not None:
                return state.failure(self)
            named = self.path.removeprefix(f"{WORKERS_PATH}/")
            if named != self.path and named not in state.details:
                return reply(self, 404, {"code": "ResourceNotFound", "message": "unknown"})
            return reply(self, 200, state.answer(self.path))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.root_url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


def reply(handler: BaseHTTPRequestHandler, status: int, body: object) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def wait_for(event: threading.Event) -> None:
    event.wait()


@pytest.fixture
def client(service: Service) -> Iterator[TaskclusterQueue]:
    queue = TaskclusterQueue(service.root_url, CREDENTIALS, timeout=timedelta(seconds=60))
    yield queue
    queue.close()


class Setting(Protocol):
    """How one contract sets up either queue."""

    @property
    def client(self) -> QueueClient: ...

    def set_counts(self, *, pending: int, claimed: int) -> None: ...

    def set_worker(self, worker_id: str, activity: Activity) -> None: ...

    def set_busy(self, *worker_ids: str) -> None: ...

    def set_history(self, worker_id: str, history: WorkerHistory) -> None: ...

    def fail(self) -> None: ...


@dataclass
class OfFake:
    client: FakeQueue

    def set_counts(self, *, pending: int, claimed: int) -> None:
        self.client.set_counts(POOL, pending=pending, claimed=claimed)

    def set_worker(self, worker_id: str, activity: Activity) -> None:
        self.client.set_activity(
            POOL,
            "g",
            worker_id,
            first_claim=activity.first_claim,
            last_active=activity.last_active,
            quarantine_until=activity.quarantine_until,
        )

    def set_busy(self, *worker_ids: str) -> None:
        self.client.set_busy(POOL, *(("g", worker_id) for worker_id in worker_ids))

    def set_history(self, worker_id: str, history: WorkerHistory) -> None:
        self.set_worker(worker_id, history.activity)
        self.client.set_history(
            POOL,
            "g",
            worker_id,
            tasks=history.recent_tasks,
            quarantine_changes=history.quarantine_changes,
        )

    def fail(self) -> None:
        self.client.fail(POOL)


@dataclass
class OfReal:
    client: TaskclusterQueue
    service: Service

    def set_counts(self, *, pending: int, claimed: int) -> None:
        self.service.counts = {"pendingTasks": pending, "claimedTasks": claimed}

    def set_worker(self, worker_id: str, activity: Activity) -> None:
        moments = {
            "firstClaim": activity.first_claim,
            "lastDateActive": activity.last_active,
            "quarantineUntil": activity.quarantine_until,
        }
        self.service.workers.append(
            {"workerGroup": "g", "workerId": worker_id}
            | {name: to_wire(at) for name, at in moments.items() if at is not None}
        )

    def set_busy(self, *worker_ids: str) -> None:
        self.service.claims = [
            {
                "taskId": f"task-{number}",
                "runId": 0,
                "workerGroup": "g",
                "workerId": worker_id,
                "claimed": to_wire(NOON),
                "task": {},
            }
            for number, worker_id in enumerate(worker_ids)
        ]

    def set_history(self, worker_id: str, history: WorkerHistory) -> None:
        self.set_worker(worker_id, history.activity)
        if history.recent_tasks:
            self.service.workers[-1]["latestTask"] = history.recent_tasks[-1]
        self.service.details[f"g/{worker_id}"] = {
            **self.service.workers[-1],
            "provisionerId": "proj-x",
            "workerType": "builders",
            "recentTasks": [{**task, "more": 1} for task in history.recent_tasks],
            "expires": to_wire(history.expires),
            "quarantineDetails": list(history.quarantine_changes),
            "actions": [],
        }

    def fail(self) -> None:
        self.service.failure = lambda handler: reply(handler, 500, {"message": "broken"})


@pytest.fixture(params=["fake", "real"])
def setting(request: pytest.FixtureRequest) -> Setting:
    if request.param == "fake":
        return OfFake(FakeQueue())
    return OfReal(request.getfixturevalue("client"), request.getfixturevalue("service"))


def test_a_queue_tells_its_counts(setting: Setting) -> None:
    setting.set_counts(pending=7, claimed=3)

    assert setting.client.counts(POOL) == QueueCounts(pending=7, claimed=3)


def test_what_waits_in_a_closed_queue_is_told_with_who_closed_it(
    client: TaskclusterQueue, service: Service
) -> None:
    said = {"closedAt": to_wire(NOON), "closedBy": "ops/ann", "closedInfo": "network down"}
    counts = {"pendingTasks": 7, "claimedTasks": 3}
    later = NOON + timedelta(days=1)
    for more, downtime in (
        (said, Downtime(later, NOON, "ops/ann", "network down")),
        ({}, Downtime(later)),
    ):
        service.counts = {**counts, "closedUntil": to_wire(later), **more}

        told = client.counts(POOL)
        assert told == QueueCounts(pending=7, claimed=3, downtime=downtime)
        assert told.to_be_given == 0


def test_a_queue_without_tasks_has_counts_of_zero(setting: Setting) -> None:
    assert setting.client.counts(POOL) == QueueCounts(pending=0, claimed=0)


def test_counts_are_those_of_this_moment(setting: Setting) -> None:
    """Report B26 (taskcluster/taskcluster#7089): cancelled tasks went on being counted."""
    setting.set_counts(pending=100, claimed=0)
    setting.client.counts(POOL)
    setting.set_counts(pending=0, claimed=0)

    assert setting.client.counts(POOL).pending == 0


def test_a_queue_tells_who_was_heard_of(setting: Setting) -> None:
    known = Activity(NOON, NOON + timedelta(minutes=5), NOON + timedelta(days=1))
    setting.set_worker("i-1", known)
    setting.set_worker("i-2", Activity())

    assert setting.client.activity(POOL) == {("g", "i-1"): known, ("g", "i-2"): Activity()}


def test_a_queue_that_knows_no_workers_says_so(setting: Setting) -> None:
    assert setting.client.activity(POOL) == {}


def test_a_queue_tells_who_holds_a_task(setting: Setting) -> None:
    setting.set_worker("idle", Activity())
    setting.set_busy("i-1", "i-2", "i-1")

    assert setting.client.busy(POOL) == {("g", "i-1"), ("g", "i-2")}


def test_a_queue_without_claims_has_no_busy_workers(setting: Setting) -> None:
    assert setting.client.busy(POOL) == frozenset()


def test_a_queue_that_fails_gives_no_facts_at_all(setting: Setting) -> None:
    """Report B13 (PR#8193): missing facts were taken for inactivity, and workers were killed."""
    setting.set_worker("i-1", Activity(NOON, NOON))
    setting.fail()

    with pytest.raises(QueueUnavailableError):
        setting.client.counts(POOL)
    with pytest.raises(QueueUnavailableError):
        setting.client.activity(POOL)
    with pytest.raises(QueueUnavailableError):
        setting.client.busy(POOL)
    with pytest.raises(QueueUnavailableError):
        setting.client.worker_page(POOL)
    with pytest.raises(QueueUnavailableError):
        setting.client.worker(POOL, "g", "i-1")


HISTORY = WorkerHistory(
    activity=Activity(NOON, NOON + timedelta(minutes=5), NOON + timedelta(days=3)),
    first_claim=NOON,
    expires=NOON + timedelta(days=1, minutes=5),
    recent_tasks=({"taskId": "a", "runId": 0}, {"taskId": "b", "runId": 2}),
    quarantine_changes=(
        {
            "clientId": "sheriff",
            "updatedAt": "2026-11-30T12:00:00.000Z",
            "quarantineUntil": "2026-12-03T12:00:00.000Z",
            "quarantineInfo": "broken",
        },
    ),
)


def test_a_queue_tells_all_it_knows_of_one_worker(setting: Setting) -> None:
    setting.set_history("i-1", HISTORY)

    assert setting.client.worker(POOL, "g", "i-1") == HISTORY


def test_a_queue_that_never_heard_of_a_worker_says_so(setting: Setting) -> None:
    assert setting.client.worker(POOL, "g", "i-1") is None


def test_a_page_of_workers_has_their_latest_tasks(setting: Setting) -> None:
    setting.set_worker("i-0", Activity(NOON))
    setting.set_history("i-1", HISTORY)

    workers, token = setting.client.worker_page(POOL)

    assert list(workers) == [
        SeenWorker("g", "i-0", Activity(NOON)),
        SeenWorker("g", "i-1", HISTORY.activity, {"taskId": "b", "runId": 2}),
    ]
    assert token is None


def test_pages_of_workers_follow_each_other(client: TaskclusterQueue, service: Service) -> None:
    service.page = 3
    service.workers = [{"workerGroup": "g", "workerId": f"i-{n}"} for n in range(7)]

    seen, token = [], None
    while True:
        workers, token = client.worker_page(POOL, token)
        seen += [worker.name for worker in workers]
        if token is None:
            break

    assert seen == [("g", f"i-{n}") for n in range(7)]
    assert len(service.paths) == 3


def test_a_page_that_leads_to_itself_is_an_error(
    client: TaskclusterQueue, service: Service
) -> None:
    service.failure = lambda handler: reply(
        handler, 200, {"workers": [], "continuationToken": "again"}
    )

    with pytest.raises(QueueUnavailableError, match="circles"):
        client.worker_page(POOL, "again")


@pytest.mark.parametrize("body", [b"<html>", {"message": "no such host"}, {"code": "Other"}])
def test_a_404_of_somebody_else_is_no_word_of_the_queue(
    client: TaskclusterQueue, service: Service, body: object
) -> None:
    service.failure = lambda handler: reply(handler, 404, body)

    with pytest.raises(QueueUnavailableError):
        client.worker(POOL, "g", "i-1")


def test_only_our_own_queue_is_taken_to_list_in_order(service: Service) -> None:
    assert not TaskclusterQueue(service.root_url, None).is_ordered
    assert TaskclusterQueue(service.root_url, None, is_ordered=True).is_ordered


def test_every_page_of_workers_is_read(client: TaskclusterQueue, service: Service) -> None:
    service.page = 3
    service.workers = [{"workerGroup": "g", "workerId": f"i-{n}"} for n in range(10)]

    assert len(client.activity(POOL)) == 10
    assert len(service.paths) == 4
    assert all("limit=1000" in path for path in service.paths)


def test_every_page_of_claims_is_read(client: TaskclusterQueue, service: Service) -> None:
    service.page = 3
    service.claims = [{"workerGroup": "g", "workerId": f"i-{n}"} for n in range(10)]

    assert len(client.busy(POOL)) == 10
    assert len(service.paths) == 4
    assert all("limit=1000" in path for path in service.paths)


def test_a_claim_that_cannot_be_read_spoils_the_list(
    client: TaskclusterQueue, service: Service
) -> None:
    service.claims = [{"workerGroup": "g", "workerId": "i-1"}, {"workerGroup": "g"}]

    with pytest.raises(QueueUnavailableError):
        client.busy(POOL)


def test_a_list_that_breaks_off_gives_no_facts_at_all(
    client: TaskclusterQueue, service: Service
) -> None:
    service.page = 3
    service.workers = [{"workerGroup": "g", "workerId": f"i-{n}"} for n in range(10)]

    def break_second_page(handler: BaseHTTPRequestHandler) -> None:
        if "continuationToken" in handler.path:
            return reply(handler, 503, {"message": "busy"})
        return reply(handler, 200, service.answer(handler.path))

    service.failure = break_second_page

    with pytest.raises(QueueUnavailableError):
        client.activity(POOL)


def test_a_list_without_end_is_an_error(client: TaskclusterQueue, service: Service) -> None:
    service.failure = lambda handler: reply(
        handler, 200, {"workers": [], "continuationToken": "again"}
    )

    with pytest.raises(QueueUnavailableError, match="circles"):
        client.activity(POOL)


def test_requests_are_signed_over_the_path_as_it_is_sent(
    client: TaskclusterQueue, service: Service
) -> None:
    client.counts(POOL)

    assert service.paths == [COUNTS_PATH]
    (header,) = service.authorizations
    receiver = mohawk.Receiver(
        lambda client_id: {
            "id": client_id,
            "key": CREDENTIALS["accessToken"],
            "algorithm": "sha256",
        },
        header,
        service.root_url + COUNTS_PATH,
        "GET",
        content="",
        content_type="",
    )
    assert receiver.parsed_header["id"] == CREDENTIALS["clientId"]


def test_temporary_credentials_send_their_certificate(service: Service) -> None:
    queue = TaskclusterQueue(
        service.root_url, CREDENTIALS | {"certificate": json.dumps({"version": 1})}
    )
    queue.counts(POOL)
    queue.close()

    assert 'ext="' in str(service.authorizations[0])


def test_without_credentials_nothing_is_signed(service: Service) -> None:
    queue = TaskclusterQueue(service.root_url, None)
    queue.counts(POOL)
    queue.close()

    assert service.authorizations == [None]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 502, 503])
def test_a_refusal_is_final_until_the_next_tick(
    client: TaskclusterQueue, service: Service, status: int
) -> None:
    service.failure = lambda handler: reply(handler, status, {"message": "no"})

    with pytest.raises(QueueUnavailableError, match=str(status)):
        client.counts(POOL)
    assert len(service.paths) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        [],
        {},
        {"pendingTasks": None, "claimedTasks": 0},
        {"pendingTasks": -1, "claimedTasks": 0},
    ],
)
def test_an_answer_that_is_none_gives_no_facts(
    client: TaskclusterQueue, service: Service, body: object
) -> None:
    service.failure = lambda handler: reply(handler, 200, body)

    with pytest.raises(QueueUnavailableError):
        client.counts(POOL)


@pytest.mark.parametrize(
    "item",
    [{"workerGroup": "g"}, {"workerGroup": "g", "workerId": "i", "firstClaim": "soon"}, "text"],
)
def test_a_worker_that_cannot_be_read_spoils_the_list(
    client: TaskclusterQueue, service: Service, item: Any
) -> None:
    service.workers = [item]

    with pytest.raises(QueueUnavailableError):
        client.activity(POOL)


def test_a_queue_that_does_not_answer_is_given_up_within_the_timeout(service: Service) -> None:
    """Report B15 (#4999): one call that never returned stalled a loop for over an hour."""
    released = threading.Event()
    service.failure = lambda _handler: wait_for(released)
    queue = TaskclusterQueue(service.root_url, None, timeout=timedelta(seconds=0.2))

    try:
        with pytest.raises(QueueUnavailableError):
            queue.counts(POOL)
    finally:
        released.set()
        queue.close()


def test_a_lost_connection_is_tried_once_more(client: TaskclusterQueue, service: Service) -> None:
    def drop_first(handler: BaseHTTPRequestHandler) -> None:
        if len(service.paths) == 1:
            handler.close_connection = True
            return None
        return reply(handler, 200, {"pendingTasks": 1, "claimedTasks": 2})

    service.failure = drop_first

    assert client.counts(POOL) == QueueCounts(pending=1, claimed=2)
    assert len(service.paths) == 2


def test_a_queue_that_is_not_there_is_unavailable() -> None:
    queue = TaskclusterQueue("http://127.0.0.1:1", None)

    with pytest.raises(QueueUnavailableError):
        queue.counts(POOL)
    queue.close()


def test_the_fake_hides_quarantines_that_are_over_and_counts_its_calls() -> None:
    fake = FakeQueue(now=NOON)
    fake.set_activity(POOL, "g", "past", quarantine_until=NOON)
    fake.set_activity(POOL, "g", "future", quarantine_until=NOON + timedelta(hours=1))

    seen = fake.activity(POOL)

    assert seen["g", "past"].quarantine_until is None
    assert seen["g", "future"].quarantine_until is not None
    assert fake.calls == {"activity": 1}


def test_the_fake_fails_as_often_as_told_and_recovers() -> None:
    fake = FakeQueue()
    fake.fail(times=1)
    with pytest.raises(QueueUnavailableError):
        fake.counts(POOL)
    fake.counts(POOL)
    fake.fail()
    with pytest.raises(QueueUnavailableError):
        fake.activity("other/pool")
    fake.recover()

    assert fake.activity("other/pool") == {}
