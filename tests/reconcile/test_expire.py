"""What the hourly clearing ends, what it leaves, and that one pool's trouble is its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, a_head, a_pool, a_worker
from tests.registry_tables import a_registry
from worker_manager.core.definition import digest
from worker_manager.core.events import WORKER_RUNNING, worker_event
from worker_manager.core.model import (
    NULL_PROVIDER,
    LaunchConfigHead,
    Location,
    Pool,
    State,
    WorkerKey,
)
from worker_manager.core.timing import Timing
from worker_manager.outbox import Outbox
from worker_manager.reconcile.expire import Keeper, expire
from worker_manager.reconcile.publish import publish
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.observations import Kind, Observation
from worker_manager.store.health import HealthStore
from worker_manager.store.offerings import OfferingStore
from worker_manager.store.pauses import PauseStore
from worker_manager.store.places import PlaceStore
from worker_manager.store.plans import PlanStore
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.pools import PoolChange, PoolStore
from worker_manager.store.provider_status import ProviderStatusStore
from worker_manager.store.slots import SlotStore
from worker_manager.store.stores import Stores
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import Json, Worker
    from worker_manager.store.tables import Tables

EAST, WEST = Location("us-east-1"), Location("us-west-2")
NOWHERE = Location("")
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass
class Bus:
    refusing: bool = False
    names: list[str] = field(default_factory=list)

    def publish(self, events: Sequence[Json]) -> set[str]:
        if self.refusing:
            return set()
        self.names += [event["name"] for event in events]
        return {event["id"] for event in events}


class House:
    """What the keeper keeps, and its clock."""

    def __init__(self, tables: Tables) -> None:
        timing = Timing()
        self.tables = tables
        self.now = NOW
        self.bus = Bus()
        self.workers = WorkerStore(tables, kept=timing.worker_kept)
        self.pools = PoolStore(tables)
        self.places = PlaceStore(tables)
        self.errors = PoolErrorStore(tables, kept=timing.errors_kept)
        stores = Stores(
            pools=self.pools,
            workers=self.workers,
            plans=PlanStore(tables, kept=timing.plan_kept),
            places=self.places,
            health=HealthStore(tables),
            offerings=OfferingStore(tables),
            pauses=PauseStore(tables),
            slots=SlotStore(tables),
            statuses=ProviderStatusStore(tables),
        )
        self.keeper = Keeper(
            stores=stores,
            outbox=Outbox(
                bus=self.bus, places=self.places, workers=self.workers, errors=self.errors
            ),
            clock=lambda: self.now,
            timing=timing,
            providers=("aws", "static"),
            static=frozenset({"static"}),
        )

    def save(
        self, pool_id: str = POOL_ID, *, heads: Sequence[LaunchConfigHead] = (), **overrides: Any
    ) -> Pool:
        before = self.pools.get(pool_id)
        bodies: dict[str, Json] = {h.launch_config_id: {"n": h.launch_config_id} for h in heads}
        version = before.version + 1 if before else 1
        after = a_pool(
            pool_id,
            [replace(h, digest=digest(bodies[h.launch_config_id])) for h in heads],
            **{"modified": self.now, "version": version} | overrides,
        )
        self.pools.save(PoolChange(after, before, bodies, events=()))
        return after

    def put(self, worker: Worker) -> Worker:
        assert self.workers.put_new(worker)
        return worker

    def state(self, worker: Worker) -> State:
        row = self.workers.get(worker.key)
        assert row is not None
        return row.state

    def pass_by(self, time: timedelta) -> dict[str, Any]:
        """Let time go by and clear up."""
        self.now += time
        return expire(self.keeper)

    def places_of(self, provider_id: str = "aws") -> dict[str, set[str]]:
        members, _ = self.places.of_provider(provider_id)
        return {member.pool_id: set(member.places) for member in members}

    def ends(self, launch_config_id: str) -> float | None:
        ttl = self.tables.pools.get(POOL_ID, f"body#{launch_config_id}").ttl
        return None if ttl is None else float(ttl)


@pytest.fixture
def house(tables: Tables) -> House:
    return House(tables)


def a_static_worker(worker_id: str = "rack-1", **overrides: Any) -> Worker:
    values: dict[str, Any] = {
        "provider_id": "static",
        "location": NOWHERE,
        "launch_config_id": None,
        "group": "racks",
        "expires": NOW + 2 * HOUR,
        "registered": NOW - HOUR,
        "registrations": (NOW - HOUR,),
    }
    return a_worker(worker_id, **(values | overrides))


def an_event(worker: Worker, *, at: datetime = NOW) -> Json:
    return worker_event(WORKER_RUNNING, worker, at=at, reason="a reason")


def test_a_static_worker_ends_when_it_expires_and_is_told_of(house: House) -> None:
    house.save(provider_id="static")
    early = house.put(a_static_worker("rack-1"))
    late = house.put(a_static_worker("rack-2", expires=NOW + DAY))

    house.pass_by(HOUR)
    assert house.state(early) is State.RUNNING

    house.pass_by(2 * HOUR)
    assert (house.state(early), house.state(late)) == (State.STOPPED, State.RUNNING)
    row = house.workers.get(early.key)
    assert row is not None
    assert (row.stop_reason, row.modified, row.unsent) == ("expired", house.now, ())
    assert house.bus.names == ["worker-stopped"]


def test_an_expired_static_worker_whose_event_is_refused_keeps_it_for_publish(
    house: House,
) -> None:
    house.save(provider_id="static")
    worker = house.put(a_static_worker())
    house.bus.refusing = True
    house.pass_by(3 * HOUR)
    assert house.state(worker) is State.STOPPED

    house.bus.refusing = False
    house.now += HOUR
    publish(house.keeper)

    assert house.bus.names == ["worker-stopped"]
    assert list(house.workers.live(POOL_ID)) == []


def test_a_clouds_worker_is_not_ended_by_its_expiry(house: House) -> None:
    house.save(heads=[a_head()])
    worker = house.put(a_worker(expires=NOW))
    house.pass_by(DAY)
    assert house.state(worker) is State.RUNNING


def test_an_archived_launch_config_ends_without_workers_and_stays_with_them(house: House) -> None:
    house.save(heads=[a_head("lc-a"), a_head("lc-b"), a_head("lc-c")])
    house.save(heads=[a_head("lc-c")])
    worker = house.put(a_worker(launch_config_id="lc-a"))

    house.pass_by(HOUR)

    end = (house.now + house.keeper.timing.launch_config_kept).timestamp()
    assert [house.ends(name) for name in ("lc-a", "lc-b", "lc-c")] == [None, int(end), None]

    house.workers.change(worker, state=State.STOPPED)
    house.pass_by(HOUR)
    assert house.ends("lc-a") is not None
    assert house.ends("lc-b") == int(end)


def test_a_launch_config_that_is_listed_again_has_no_end(house: House) -> None:
    house.save(heads=[a_head("lc-a"), a_head("lc-b")])
    house.save(heads=[a_head("lc-b")])
    house.pass_by(HOUR)
    assert house.ends("lc-a") is not None

    house.save(heads=[a_head("lc-a"), a_head("lc-b")])

    assert house.ends("lc-a") is None


def test_a_launch_config_that_came_while_its_pool_was_cleared_is_kept_after_all(
    house: House,
) -> None:
    """Bodies are written before the pool names them: clearing may see one without a pool."""
    house.save(heads=[a_head("lc-a")])
    house.pools.expire_body(POOL_ID, "lc-a", NOW + DAY)

    house.pass_by(HOUR)

    assert house.ends("lc-a") is None


def test_a_place_is_left_a_month_after_its_last_worker(house: House) -> None:
    house.save(heads=[a_head("lc-a"), a_head("lc-b", location=WEST)])
    house.save(heads=[a_head("lc-a")])
    worker = house.put(a_worker(launch_config_id="lc-b", location=WEST))
    house.pass_by(40 * DAY)
    house.workers.change(worker, state=State.STOPPED)

    house.pass_by(DAY)
    house.pass_by(29 * DAY)
    assert house.places_of() == {POOL_ID: {EAST, WEST}}

    house.pass_by(2 * DAY)
    assert house.places_of() == {POOL_ID: {EAST}}


def test_a_place_that_is_used_again_begins_its_month_anew(house: House) -> None:
    house.save(heads=[a_head("lc-a"), a_head("lc-b", location=WEST)])
    house.save(heads=[a_head("lc-a")])
    house.pass_by(HOUR)
    house.save(heads=[a_head("lc-a"), a_head("lc-b", location=WEST)])
    house.pass_by(29 * DAY)
    house.save(heads=[a_head("lc-a")])

    house.pass_by(2 * DAY)
    assert house.places_of() == {POOL_ID: {EAST, WEST}}
    house.pass_by(31 * DAY)
    assert house.places_of() == {POOL_ID: {EAST}}


def test_a_deleted_pool_goes_only_when_its_cloud_has_left_it(house: House) -> None:
    house.save(heads=[a_head()])
    pool = house.save(provider_id=NULL_PROVIDER, previous_provider_ids=("aws",))
    house.pass_by(HOUR)
    assert list(house.pools.ids()) == [POOL_ID]

    house.pools.drop_previous(pool, house.pools.control(POOL_ID), "aws")
    worker = house.put(a_worker(provider_id="gone"))
    house.pass_by(HOUR)
    assert list(house.pools.ids()) == [POOL_ID]

    house.workers.change(worker, state=State.STOPPED)
    house.pass_by(HOUR)
    assert list(house.pools.ids()) == []
    assert house.pools.get(POOL_ID) is None
    assert house.ends("lc-a") is not None


def test_a_deleted_pool_with_an_untold_event_stays_until_it_is_told(house: House) -> None:
    house.save(provider_id=NULL_PROVIDER)
    stopped = a_worker(state=State.STOPPED)
    house.put(replace(stopped, unsent=(an_event(stopped),)))

    house.pass_by(HOUR)
    assert list(house.pools.ids()) == [POOL_ID]

    house.keeper.outbox.send_workers(house.workers.live(POOL_ID))
    house.pass_by(HOUR)
    assert list(house.pools.ids()) == []


def test_a_pool_that_moved_from_racks_leaves_them_after_its_last_worker_there(
    house: House,
) -> None:
    house.save(provider_id="static")
    house.save(heads=[a_head()], previous_provider_ids=("static",))
    worker = house.put(a_static_worker())

    house.pass_by(HOUR)
    assert house.places_of("static") == {POOL_ID: set()}

    house.pass_by(2 * HOUR)
    assert house.state(worker) is State.STOPPED
    house.pass_by(HOUR)

    assert house.places_of("static") == {}
    pool = house.pools.get(POOL_ID)
    assert pool is not None
    assert pool.previous_provider_ids == ()


def test_a_deleted_pool_of_racks_goes_with_its_membership(house: House) -> None:
    house.save(provider_id="static")
    house.save(provider_id=NULL_PROVIDER, previous_provider_ids=("static",))

    house.pass_by(HOUR)

    assert list(house.pools.ids()) == []
    assert house.places_of("static") == {}


def test_a_pool_that_fails_stops_no_other(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["proj-x/a", "proj-x/b", "proj-x/c"]
    for name in names:
        house.save(name, provider_id="static")
    workers = [house.put(a_static_worker(pool_id=name)) for name in names]
    read = house.workers.live

    def live(pool_id: str, location: Location | None = None) -> Any:
        if pool_id == "proj-x/b":
            raise RuntimeError("DynamoDB has a bad day")
        return read(pool_id, location)

    monkeypatch.setattr(house.workers, "live", live)

    assert house.pass_by(3 * HOUR) == {"pools": 2, "failed": 1, "forgotten": 0}
    assert [house.state(w).value for w in workers] == ["stopped", "running", "stopped"]


def test_a_pool_that_changes_meanwhile_is_cleared_the_next_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = house.save(provider_id=NULL_PROVIDER)
    monkeypatch.setattr(house.pools, "get", lambda _: replace(pool, version=7))
    assert house.pass_by(HOUR) == {"pools": 0, "failed": 0, "forgotten": 0}
    monkeypatch.undo()

    assert house.pass_by(HOUR) == {"pools": 1, "failed": 0, "forgotten": 0}
    assert list(house.pools.ids()) == []


def test_machines_of_static_pools_are_known_to_stay_and_what_is_unheard_of_is_forgotten(
    house: House, tables: Tables
) -> None:
    registry = a_registry(tables)
    house.keeper = replace(house.keeper, declarations=Declarations(registry))
    house.save(provider_id="static")
    elsewhere = "proj-x/elsewhere"
    for queue_id in (POOL_ID, elsewhere):
        key = WorkerKey(queue_id, "rack", "m-1")
        registry.observe([Observation(key, Kind.IDLE, NOW)])

    house.pass_by(HOUR)
    stays = {one.queue_id: one.is_hardware for one in registry.worker_types()}
    assert stays == {POOL_ID: True, elsewhere: False}
    assert house.pass_by(181 * DAY)["forgotten"] == 3


@pytest.mark.parametrize("is_noted_first", [True, False])
def test_a_persons_word_on_whether_machines_stay_holds_in_a_static_pool(
    house: House, tables: Tables, is_noted_first: bool
) -> None:
    registry = a_registry(tables)
    declarations = Declarations(registry)
    house.keeper = replace(house.keeper, declarations=declarations)
    house.save(provider_id="static")
    registry.observe([Observation(WorkerKey(POOL_ID, "rack", "m-1"), Kind.IDLE, NOW)])
    if is_noted_first:
        house.pass_by(HOUR)

    declarations.worker_type(POOL_ID, {"is_hardware": False}, by="test/root", now=house.now)
    house.pass_by(HOUR)

    known = registry.worker_type(POOL_ID)
    assert known is not None
    assert not known.is_hardware
