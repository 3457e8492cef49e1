"""A provider that is refused everywhere is said to fail, alone, and until it works again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import REGION, a_head
from worker_manager.core.errors import CloudUnavailableError, NotAuthorizedError
from worker_manager.core.model import Location
from worker_manager.providers.fake import Method
from worker_manager.reconcile.provider_status import provider_failed, provider_recovered
from worker_manager.store.provider_status import Activity, Failing
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reconcile.world import World

WEST = Location("us-west-2")
REFUSED = NotAuthorizedError("AuthFailure: key AKIDSECRET is not valid", code="AuthFailure")
PROVIDERS = ("aws", "aws-2", "aws-3")


@pytest.fixture
def three(new_world: Callable[..., World]) -> World:
    """Three providers, each with a pool that wants machines."""
    world = new_world(provider_ids=PROVIDERS)
    for name in PROVIDERS:
        world.save_pool(f"proj-x/{name}", provider_id=name, minimum=1)
    return world


def failing(world: World, provider_id: str = "aws") -> list[Failing]:
    with world.aside():
        return world.stores.statuses.failing(provider_id, world.clock.now)


def refuse_lists(world: World, times: int = 1, provider_id: str = "aws") -> None:
    for _ in range(times):
        world.providers[provider_id].fail(Method.INSTANCES, REFUSED)


def test_a_provider_whose_lists_are_refused_fails_and_the_others_do_not(three: World) -> None:
    refuse_lists(three)
    three.tick()
    three.scan()

    (found,) = failing(three)
    assert (found.activity, found.kind, found.since) == ("list", "not-authorized", three.clock.now)
    assert found.reason.startswith("AuthFailure: ")
    assert "AKIDSECRET" not in found.reason
    assert failing(three, "aws-2") == failing(three, "aws-3") == []
    for name in PROVIDERS:
        assert three.states(f"proj-x/{name}") == {"requested": 1}, "launching goes on"


def test_a_list_that_is_allowed_again_ends_it(three: World) -> None:
    refuse_lists(three)
    three.scan()
    three.clock.advance(seconds=60)
    three.scan()

    assert failing(three) == []


def test_it_is_logged_as_often_as_it_is_written(
    three: World, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_lists(three, 4)
    with caplog.at_level(logging.ERROR):
        for _ in range(4):
            three.scan()
            three.clock.advance(seconds=20)

    assert caplog.messages.count("a provider fails") == 2


def test_its_end_is_logged_once(three: World, caplog: pytest.LogCaptureFixture) -> None:
    logger.setLevel("INFO")
    refuse_lists(three)
    for _ in range(4):
        three.scan()
        three.clock.advance(seconds=60)

    assert caplog.messages.count("a provider works again") == 1


@pytest.fixture
def two_regions(new_world: Callable[..., World]) -> World:
    world = new_world()
    world.save_pool(heads=[a_head("lc-a"), a_head("lc-b", location=WEST)])
    return world


def test_one_region_that_is_refused_is_stale_and_no_failure_of_the_provider(
    two_regions: World,
) -> None:
    refuse_lists(two_regions)
    two_regions.scan()

    assert failing(two_regions) == []
    places = two_regions.stores.places.places("aws", [REGION, WEST])
    assert sum(place.stale_since is not None for place in places) == 1


def test_all_regions_that_are_refused_are(two_regions: World) -> None:
    refuse_lists(two_regions, 2)
    two_regions.scan()

    assert len(failing(two_regions)) == 1


def test_a_cloud_that_is_merely_down_neither_fails_nor_recovers(three: World) -> None:
    refuse_lists(three)
    three.scan()
    for name in ("aws", "aws-2"):
        three.providers[name].fail(Method.INSTANCES, CloudUnavailableError("down"))
    three.clock.advance(seconds=60)
    three.scan()

    assert len(failing(three)) == 1
    assert failing(three, "aws-2") == []


def test_refused_launches_are_told_apart_from_lists(three: World) -> None:
    deps = three.deps
    provider_failed(deps, Activity.TERMINATE, REFUSED)
    three.scan()
    assert [one.activity for one in failing(three)] == ["terminate"]

    provider_recovered(deps, Activity.TERMINATE)

    assert failing(three) == []


def test_a_provider_whose_key_was_repaired_while_nothing_was_wanted_works_again(
    three: World,
) -> None:
    """B18: nobody launches, so no success tells of it."""
    provider_failed(three.deps, Activity.TERMINATE, REFUSED)
    three.clock.advance(minutes=59)
    assert len(failing(three)) == 1

    three.clock.advance(minutes=1)

    assert failing(three) == []


def test_a_status_that_cannot_be_written_stops_nothing(
    three: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def down(*_: Any, **__: Any) -> None:
        raise RuntimeError("the table has a bad day")

    for name in ("failed", "recovered"):
        monkeypatch.setattr(
            f"worker_manager.store.provider_status.ProviderStatusStore.{name}", down
        )
    refuse_lists(three)
    three.tick()
    three.scan()

    for name in PROVIDERS:
        assert three.states(f"proj-x/{name}") == {"requested": 1}
    assert "a provider fails" in caplog.messages
    assert "a provider's status could not be written" in caplog.messages
