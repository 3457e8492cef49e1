"""Orders, and workers for the machines they bring."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import LaunchOrder, Location, State, Worker, WorkerKey

if TYPE_CHECKING:
    from worker_manager.core.model import Sighting

NOW = datetime(2031, 5, 17, 12, 0, tzinfo=UTC)
OREGON = Location("us-west-2")
VIRGINIA = Location("us-east-1")
DEPLOYMENT = "wm-test"
OTHER_DEPLOYMENT = "wm-elsewhere"
BODY: dict[str, Any] = {
    "region": OREGON,
    "launchConfig": {"ImageId": "ami-0a1b2c3d4e5f60718", "InstanceType": "m5.large"},
    "workerConfig": {"shutdown": {"afterIdleSeconds": 120}},
    "additionalUserData": {"motd": "grüße"},
}
INPUTS = {
    "owner": "owner@example.com",
    "rootUrl": "https://tc.example.com",
    "deployment": DEPLOYMENT,
    "ordered": "2031-05-17T12:00:00+00:00",
    "description": "Linux for everybody",
}


def an_order(**given: Any) -> LaunchOrder:
    order = LaunchOrder(
        order_id="wm-0123456789abcdef",
        pool_id="proj/linux",
        provider_id="aws",
        launch_config_id="lc-6350aa384f6ab04fc4d1",
        location=OREGON,
        count=2,
        body=BODY,
        inputs=INPUTS,
    )
    return replace(order, **given)


def a_worker(worker_id: str, *, location: Location = OREGON, pool_id: str = "proj/linux") -> Worker:
    return Worker(
        key=WorkerKey(pool_id, location, worker_id),
        provider_id="aws",
        location=location,
        state=State.REQUESTED,
        capacity=1,
        created=NOW,
        modified=NOW,
        expires=NOW + timedelta(days=7),
    )


def worker_of(sighting: Sighting) -> Worker:
    return replace(
        a_worker(sighting.key.worker_id),
        key=sighting.key,
        location=sighting.location,
        launch_config_id=sighting.launch_config_id,
        order_id=sighting.order_id,
        identity=sighting.identity,
    )
