from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, POOL_ID, a_sighting
from worker_manager.core.breaker import Breaker, BreakerState
from worker_manager.core.health import FAILURE_KINDS
from worker_manager.core.messages import (
    Follow,
    ProvisionPool,
    Reboot,
    Resume,
    ScanPool,
    Terminate,
    advance_from_json,
    pool_changed,
)
from worker_manager.core.model import Location, MachineStatus, Sighting, WorkerKey
from worker_manager.core.moments import whole_milliseconds

EAST = Location("us-east-1")
moments = st.datetimes(
    min_value=datetime(2020, 1, 1),  # noqa: DTZ001
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(whole_milliseconds)
locations = st.text(min_size=1, max_size=20).map(Location)
by_location = st.dictionaries(locations, moments, max_size=3)


def sent(body: dict[str, Any]) -> Any:
    """A body as it arrives at the other side of a queue."""
    return json.loads(json.dumps(body))


breakers = st.builds(
    Breaker,
    state=st.sampled_from(BreakerState),
    kind=st.sampled_from(FAILURE_KINDS),
    reason=st.text(max_size=20),
    since=moments,
    next_try=st.none() | moments,
    step=st.integers(0, 9),
    machines=st.none() | st.integers(0, 99),
)


@given(
    tick=st.text(),
    at=st.none() | moments,
    not_before=by_location,
    stale=by_location,
    offerings=st.none() | st.dictionaries(st.text(), breakers, max_size=3),
)
def test_a_provision_message_arrives_as_it_was_sent(
    tick: str,
    at: datetime | None,
    not_before: dict[Location, datetime],
    stale: dict[Location, datetime],
    offerings: dict[str, Breaker] | None,
) -> None:
    message = ProvisionPool(POOL_ID, tick, at, not_before, stale, offerings)

    assert ProvisionPool.from_json(sent(message.to_json())) == message


@st.composite
def sightings(draw: st.DrawFn) -> Sighting:
    return a_sighting(
        draw(st.text()),
        group=draw(st.text()),
        status=draw(st.sampled_from(MachineStatus)),
        launch_config_id=draw(st.none() | st.text()),
        order_id=draw(st.none() | st.text()),
        launched=draw(st.none() | moments),
        identity=draw(st.dictionaries(st.text(), st.text() | st.booleans(), max_size=2)),
    )


@given(
    tick=st.text(),
    listed_at=moments,
    found=st.lists(sightings(), max_size=4).map(tuple),
    strays=st.booleans(),
    complete_at=st.none() | moments,
)
def test_a_scan_message_arrives_as_it_was_sent(
    tick: str,
    listed_at: datetime,
    found: tuple[Sighting, ...],
    strays: bool,
    complete_at: datetime | None,
) -> None:
    message = ScanPool(POOL_ID, EAST, tick, listed_at, found, strays, complete_at)

    assert ScanPool.from_json(sent(message.to_json())) == message


@given(group=st.text(), worker_id=st.text(), text=st.text(), moment=moments)
def test_follow_ups_arrive_as_they_were_sent(
    group: str, worker_id: str, text: str, moment: datetime
) -> None:
    key = WorkerKey(POOL_ID, group, worker_id)
    for message in (
        Terminate(key),
        Resume(POOL_ID, text),
        Reboot(key, text),
        Reboot(key, text, lease_id=text, not_before=moment),
    ):
        assert advance_from_json(sent(message.to_json())) == message


@given(
    workers=st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=3),
    order_id=st.text(),
    since=moments,
)
def test_what_is_to_be_followed_arrives_as_it_was_sent(
    workers: list[tuple[str, str]], order_id: str, since: datetime
) -> None:
    keys = tuple(WorkerKey(POOL_ID, group, worker_id) for group, worker_id in workers)
    message = Follow(EAST, keys, order_id, since)

    assert advance_from_json(sent(message.to_json())) == message


def test_an_order_of_a_hundred_machines_is_followed_by_one_message() -> None:
    keys = tuple(WorkerKey(POOL_ID, "westeurope", f"vm-{number:035d}") for number in range(100))

    assert len(json.dumps(Follow(EAST, keys, "o-" + "f" * 30, NOW).to_json())) < 8 * 1024


def test_a_follow_up_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ValueError, match="dance"):
        advance_from_json({"kind": "dance"})


def test_a_tick_of_a_pool_is_one_message_however_often_it_is_sent() -> None:
    message = ProvisionPool(POOL_ID, "t-1", NOW)

    assert message.dedup == ProvisionPool(POOL_ID, "t-1", NOW + timedelta(seconds=9)).dedup
    assert message.dedup != ProvisionPool(POOL_ID, "t-2", NOW).dedup
    assert message.dedup != ProvisionPool("other/pool", "t-1", NOW).dedup
    assert len(message.dedup) <= 128


def test_a_scan_is_grouped_and_deduplicated_by_pool_and_location() -> None:
    message = ScanPool(POOL_ID, EAST, "t-1", NOW)
    elsewhere = ScanPool(POOL_ID, Location("us-west-2"), "t-1", NOW)

    assert message.group == f"{POOL_ID}@us-east-1"
    assert message.group != elsewhere.group
    assert message.dedup != elsewhere.dedup
    assert message.dedup == ScanPool(POOL_ID, EAST, "t-1", NOW + timedelta(seconds=9)).dedup


def test_a_changed_pool_is_looked_at_once_a_version_and_never_too_late() -> None:
    message = pool_changed(POOL_ID, 7, changed=NOW)

    assert message.at is None
    assert message.dedup == pool_changed(POOL_ID, 7, changed=NOW).dedup
    assert message.dedup != pool_changed(POOL_ID, 8, changed=NOW).dedup


def test_the_first_change_of_a_pool_made_anew_is_not_that_of_the_one_deleted() -> None:
    first = pool_changed(POOL_ID, 1, changed=NOW)

    assert pool_changed(POOL_ID, 1, changed=NOW + timedelta(minutes=1)).tick != first.tick


def test_a_pool_that_has_to_wait_again_and_again_keeps_a_short_tick() -> None:
    ticks = ["2026-01-02T03:04:00.000Z#01"]
    for minute in range(20):
        ticks.append(Resume.after(POOL_ID, ticks[-1], NOW + timedelta(minutes=minute)).tick)

    assert len(set(ticks)) == 21
    assert {len(tick) for tick in ticks[1:]} == {len(ticks[1])}
    assert all(tick.endswith(f"#resume#{ticks[0]}") for tick in ticks[1:])


def test_a_thousand_sightings_are_small_enough_to_send_in_a_queue_of_256_kib() -> None:
    found = tuple(
        a_sighting(f"i-{number:017x}", order_id="o-" + "f" * 30, launch_config_id="lc-" + "f" * 20)
        for number in range(1000)
    )

    assert len(json.dumps(ScanPool(POOL_ID, EAST, "t-1", NOW, found).to_json())) < 256 * 1024
