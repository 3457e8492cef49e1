"""A hundred thousand workers and a thousand pools in one provider: what still fits.

Each function runs once in a process of its own (``alone``), against a cloud that has all machines.
Only the rows that those calls read are written: those of the largest pool and of an average one.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import botocore.session

from tests.benchmarks.alone import Errand, Found, call
from tests.benchmarks.clouds import CLOUDS, ROOT, Cloud
from tests.benchmarks.fleet import seed_machines
from tests.benchmarks.fleets import CALL_SECONDS
from tests.benchmarks.pools import create_pools
from tests.benchmarks.results import Measure
from tests.benchmarks.world import HOME_REGION, make_tables, now
from worker_manager.core.timing import Timing
from worker_manager.store.places import Place, PlaceStore
from worker_manager.store.pools import PoolStore
from worker_manager.store.tables import Tables
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.benchmarks.world import Endpoints
    from worker_manager.core.model import Pool

WORKERS = 100_000
POOLS = 1_000
LARGEST = 10_000
"""Workers of the largest pool."""
LAUNCH_CONFIGS = 2
PAGES = {"aws": (1_000, 1), "azure": (200, 2), "google": (500, 1)}
"""Machines on a page, and how many lists are read."""
MEGABYTES = 512
MESSAGE_KB, ITEM_KB = 256, 400
SCAN_SECONDS = 60


def measure_scale(
    endpoints: Endpoints, *, scale: float = 1.0, clouds: Iterable[Cloud] = CLOUDS
) -> list[Measure]:
    """Each of the clouds by itself."""
    return [measure for cloud in clouds for measure in Trial(endpoints, cloud, scale).measures()]


class Trial:
    """One provider with all its pools and machines."""

    def __init__(self, endpoints: Endpoints, cloud: Cloud, scale: float) -> None:
        self._cloud = cloud
        self._simulated = endpoints.clouds[cloud.name]
        self._workers, self._largest = round(WORKERS * scale), round(LARGEST * scale)
        self._tables = make_tables()
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "layers/shared/python")]),
        }
        tables = Tables.bind(self._tables, botocore.session.get_session(), HOME_REGION)
        self._pools = create_pools(
            PoolStore(tables),
            range(max(2, round(POOLS * scale))),
            launch_configs=LAUNCH_CONFIGS,
            maximum=2 * LARGEST,
            cloud=cloud,
        )
        self._seed(WorkerStore(tables, kept=Timing().worker_kept), PlaceStore(tables))

    def _seed(self, store: WorkerStore, places: PlaceStore) -> None:
        """All machines, the rows of the largest pool and of an average one, and the last lists."""
        self._simulated.control(reset="all")
        rows = seed_machines(self._simulated, self._pools[:1], self._largest)
        rest = seed_machines(self._simulated, self._pools[1:], self._workers - self._largest)
        looked_at = {pool.pool_id for pool in self._pools[:2]}
        store.put_all_new([row for row in (*rows, *rest) if row.key.pool_id in looked_at])
        listed = Counter(row.location for row in (*rows, *rest))
        for location, machines in listed.items():
            places.believed(self._cloud.name, Place(location), began=now(), machines=machines)
        self._simulated.control(latency={"*": CALL_SECONDS}, reset="counts")

    def measures(self) -> list[Measure]:
        """Run each function, and look at what it took."""
        name = self._cloud.name
        listed = self._scan()
        calls = self._simulated.calls()
        ticked = self._call("provision_tick")
        scanned = self._call(
            "scan_pool", _concerning(self._pools[:2], listed, "scan"), blobs=listed.blobs
        )
        planned = self._call("provision_pool", _concerning(self._pools[:2], ticked, "provision"))
        functions = {"scan_tick": listed, "scan_pool": scanned, "provision_pool": planned}
        messages = [listed.largest_message, ticked.largest_message]
        items = [found.largest_item for found in (*functions.values(), ticked)]
        count = len(self._pools)
        return [
            Measure(f"scale_{name}_scan_calls", calls, "calls", self._pages()),
            Measure(f"scale_{name}_scan_seconds", round(listed.seconds, 1), "s", SCAN_SECONDS),
            *(
                Measure(f"scale_{name}_{function}", round(found.megabytes), "MB", MEGABYTES)
                for function, found in functions.items()
            ),
            Measure(f"scale_{name}_message", round(max(messages) / 1024), "KB", MESSAGE_KB),
            Measure(f"scale_{name}_item", round(max(items) / 1024, 1), "KB", ITEM_KB),
            Measure(
                f"scale_{name}_provision_tick_messages",
                len(ticked.sent["provision"]),
                "messages",
                count,
            ),
            Measure(
                f"scale_{name}_provision_tick_requests",
                ticked.requests + ticked.sqs_requests,
                "requests",
                max(4, count // 8),
            ),
        ]

    def _scan(self) -> Found:
        """The scan's tick; where it is shared out, the most that any part took, and all it sent."""
        first = self._call("scan_tick")
        parts = [
            self._call("scan_tick", [json.loads(text)]) for text in first.sent.pop("ticks", ())
        ]
        together = [first, *parts]
        return Found(
            seconds=max(part.seconds for part in together),
            megabytes=max(part.megabytes for part in together),
            requests=sum(part.requests for part in together),
            sqs_requests=sum(part.sqs_requests for part in together),
            largest_item=max(part.largest_item for part in together),
            largest_message=max(part.largest_message for part in together),
            sent={"scan": [text for part in together for text in part.sent.get("scan", ())]},
            blobs={key: text for part in together for key, text in part.blobs.items()},
        )

    def _pages(self) -> int:
        """Calls that it takes to read all lists, with a page begun in each location."""
        size, lists = PAGES[self._cloud.name]
        places = len(self._cloud.locations)
        return lists * (math.ceil(self._workers / size) + places)

    def _call(
        self, function: str, bodies: Iterable[Any] = (), blobs: Mapping[str, str] | None = None
    ) -> Found:
        errand = Errand(
            function=function,
            cloud=self._cloud.name,
            url=self._simulated.url,
            tables=self._tables,
            bodies=tuple(bodies),
            blobs=blobs or {},
        )
        return call(errand, self._environment)


def _concerning(pools: Iterable[Pool], found: Found, queue: str) -> list[Any]:
    """Bodies of the messages for these pools, whether or not they are in blobs."""
    wanted = {pool.pool_id for pool in pools}
    bodies = [json.loads(text) for text in found.sent[queue]]
    return [
        body
        for body in bodies
        if (json.loads(found.blobs[body["blob"]]) if "blob" in body else body)["pool"] in wanted
    ]
