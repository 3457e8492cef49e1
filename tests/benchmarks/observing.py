"""Looking at a Taskcluster queue elsewhere: 5,054 workers of 384 task queues, half of them busy.

The queue is a process of its own, the registry's table in memory in this one.  The first look
learns of everybody; the second, five minutes later, finds nothing new, as most do.  Read next:
``task_queue``, which answers.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import botocore.session
import requests

from tests.benchmarks.clouds import ROOT
from tests.benchmarks.polling_fleet import Clock, in_memory, keys_of
from tests.benchmarks.results import Measure
from tests.benchmarks.task_queue import a_task_queue
from tests.benchmarks.units import Meter
from tests.registry_tables import a_registry, quarantines_of
from worker_manager.core.moments import to_wire
from worker_manager.registry.backends.remote import RemoteBackend
from worker_manager.store.tables import Tables
from worker_manager.taskcluster.observed_queue import ObservedQueue
from worker_manager.taskcluster.queue_http import QueueHttp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from worker_manager.core.model import WorkerKey

WORKERS, POOLS, LARGEST = 5_054, 384, 500
LOOK = timedelta(minutes=5)
"""Between one look and the next."""
SEEN = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def measure_observing(*, scale: float = 1.0) -> list[Measure]:
    """Two looks at a queue, of which the second is measured."""
    counts = (round(n * scale) for n in (WORKERS, POOLS, LARGEST))
    pools = keys_of(*(max(least, n) for least, n in zip((20, 4, 8), counts, strict=True)))
    folder = ROOT / "build" / "bench" / "observing"
    with in_memory(), a_task_queue(_made(folder)) as url:
        _tell(url, pools)
        tables = Tables.bind({}, botocore.session.get_session(), "us-east-1")
        registry, clock = a_registry(tables), Clock(SEEN)
        credentials = {"clientId": "bench", "accessToken": "bench"}
        queue = ObservedQueue(QueueHttp(url, credentials))
        backend = RemoteBackend(registry, quarantines_of(registry), queue, clock)
        learned = backend.refresh(lambda: False)
        meter = Meter()
        meter.attach(tables.connection.client)
        clock.now += LOOK
        with _sent() as sent:
            began = time.perf_counter()
            backend.refresh(lambda: False)
            seconds = time.perf_counter() - began
    missed = sum(map(len, pools)) - learned["workers"] + learned["failed"]
    reads = sum(call.units.read for call in meter.calls)
    writes = sum(call.is_write for call in meter.calls)
    return [
        Measure("observe_workers_missed", missed, "workers", 0),
        Measure("observe_queue_calls", sent.total(), "calls", 1 + 2 * len(pools)),
        Measure("observe_writes", writes, "writes", 0),
        Measure("observe_requests", len(meter.calls), "requests", len(pools) + 10),
        Measure("observe_read_units", round(reads), "read units", 2 * len(pools)),
        Measure("observe_seconds", round(seconds, 2), "s", 30),
    ]


def _tell(url: str, pools: Sequence[Sequence[WorkerKey]]) -> None:
    """Every worker has called, and half of each pool's have a task."""
    document = {
        pool[0].pool_id: {
            "pending": 0,
            "claimed": len(pool) // 2,
            "active": to_wire(SEEN),
            "workers": [(key.group, key.worker_id, to_wire(SEEN - LOOK)) for key in pool],
        }
        for pool in pools
    }
    request = urllib.request.Request(f"{url}/pools", json.dumps(document).encode(), method="PUT")
    urllib.request.urlopen(request, timeout=60).close()


@contextmanager
def _sent() -> Iterator[Counter[str]]:
    """Requests to the queue, by verb."""
    send, sent = requests.Session.request, Counter[str]()

    def counted(session: requests.Session, method: str, *args: Any, **named: Any) -> Any:
        sent[method] += 1
        return send(session, method, *args, **named)

    with patch.object(requests.Session, "request", counted):
        yield sent


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
