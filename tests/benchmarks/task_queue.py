"""A task queue that says what it was told: ``python -m tests.benchmarks.task_queue PORT``.

It runs in a process of its own, so that its processor time is not taken for that of our functions.
``PUT /pools`` takes, by pool, ``pending``, ``claimed`` and ``workers`` (group, id, first claim).
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from infra.local.children import Child, clean_environment, free_port
from tests.benchmarks.clouds import ROOT
from worker_manager.core.ids import derived_slugid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POOLS: dict[str, dict[str, Any]] = {}
NOTHING: dict[str, Any] = {"pending": 0, "claimed": 0, "workers": [], "active": ""}


@contextmanager
def a_task_queue(folder: Path) -> Iterator[str]:
    """A task queue that says what it is told, in a process of its own; its URL."""
    port = free_port()
    child = Child(
        "task queue",
        [sys.executable, "-m", "tests.benchmarks.task_queue", str(port)],
        environment=clean_environment(home=folder / "queue", path="/usr/bin", PYTHONPATH=str(ROOT)),
        log=folder / "queue.log",
    )
    try:
        child.wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        child.stop()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_PUT(self) -> None:
        POOLS.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._send({})

    def do_GET(self) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/")]
        if parts[-1] == "task-queues":
            self._send({"taskQueues": [{"taskQueueId": name} for name in POOLS]})
        elif parts[-1] == "workers":
            self._send({"workers": _workers(f"{parts[5]}/{parts[7]}")})
        else:
            pool = POOLS.get(parts[5], NOTHING)
            self._send(_counts(pool) if parts[-1] == "counts" else {"tasks": _claims(pool)})

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def _send(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _counts(pool: dict[str, Any]) -> dict[str, int]:
    return {"pendingTasks": pool["pending"], "claimedTasks": pool["claimed"]}


def _claims(pool: dict[str, Any]) -> list[dict[str, Any]]:
    busy = pool["workers"][: pool["claimed"]]
    return [
        {
            "workerGroup": group,
            "workerId": name,
            "taskId": derived_slugid("task", name),
            "runId": 0,
            "claimed": pool["active"],
        }
        for group, name, _ in busy
    ]


def _workers(pool_id: str) -> list[dict[str, Any]]:
    pool = POOLS.get(pool_id, NOTHING)
    return [
        {
            "workerGroup": group,
            "workerId": name,
            "firstClaim": first_claim,
            "lastDateActive": pool["active"],
        }
        for group, name, first_claim in pool["workers"]
    ]


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
