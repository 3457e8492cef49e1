"""How providers fare, and that one which fails keeps nobody from the API."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import a_definition, a_static_definition
from worker_manager.core.moments import to_wire
from worker_manager.store.provider_status import Activity

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

POOL = "worker-pool/proj-x%2Fpool-1"


def fails(api: Api, activity: Activity, reason: str, provider_id: str = "aws") -> None:
    api.deps.stores.statuses.failed(
        provider_id, activity, kind="not-authorized", reason=reason, now=api.deps.clock()
    )


def statuses(api: Api) -> dict[str, Any]:
    listed = api.ok("GET", "providers")["providers"]
    return {found["providerId"]: found.get("status") for found in listed}


def test_a_provider_that_fails_says_since_when_and_why(api: Api, clock: Clock) -> None:
    began = clock()
    fails(api, Activity.TERMINATE, "no key")
    clock.advance(seconds=60)
    fails(api, Activity.LIST, "no key either")

    assert statuses(api) == {
        "aws": {
            "state": "failing",
            "since": to_wire(began),
            "reason": "terminate: no key; list: no key either",
        },
        "aws-2": {"state": "ok"},
        "static": None,
    }

    api.deps.stores.statuses.recovered("aws", Activity.TERMINATE, now=clock())
    clock.advance(seconds=timedelta(minutes=11).total_seconds())
    assert statuses(api)["aws"] == {"state": "ok"}


def test_one_pool_says_how_its_provider_fares(api: Api, clock: Clock) -> None:
    api.ok("PUT", POOL, a_definition())
    assert api.ok("GET", POOL)["providerStatus"] == {"state": "ok"}

    fails(api, Activity.TERMINATE, "no key")

    assert api.ok("GET", POOL)["providerStatus"] == {
        "state": "failing",
        "since": to_wire(clock()),
        "reason": "terminate: no key",
    }
    [listed] = api.ok("GET", "worker-pools")["workerPools"]
    assert "providerStatus" not in listed


def test_where_nothing_can_fail_nothing_is_said_of_it(api: Api) -> None:
    api.ok("PUT", POOL, a_static_definition())

    assert "providerStatus" not in api.ok("GET", POOL)


@pytest.mark.parametrize("provider_id", ["aws", "aws-2"])
def test_pools_of_a_provider_that_fails_are_defined_changed_and_deleted(
    api: Api, provider_id: str
) -> None:
    """The reference answers 503: its API needs what its providers set up, and ours does not."""
    fails(api, Activity.SETUP, "no key", provider_id)

    created = api.ok("PUT", POOL, a_definition(providerId=provider_id))
    assert api.ok("GET", POOL) == created
    api.ok("POST", POOL, a_definition(providerId=provider_id, description="changed"))
    api.ok("DELETE", POOL)
