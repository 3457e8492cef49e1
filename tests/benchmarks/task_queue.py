"""A task queue that says what it was told: ``python -m tests.benchmarks.task_queue PORT``.

It runs in a process of its own, so that its processor time is not taken for that of our functions.
``PUT /pools`` takes, by pool, ``pending``, ``claimed`` and ``workers`` (group, id, first claim).
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

POOLS: dict[str, dict[str, Any]] = {}
NOTHING: dict[str, Any] = {"pending": 0, "claimed": 0, "workers": [], "active": ""}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_PUT(self) -> None:
        POOLS.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._send({})

    def do_GET(self) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.split("/")]
        if parts[-1] == "workers":
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


def _claims(pool: dict[str, Any]) -> list[dict[str, str]]:
    busy = pool["workers"][: pool["claimed"]]
    return [{"workerGroup": group, "workerId": name} for group, name, _ in busy]


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
