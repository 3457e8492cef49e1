"""What stands in the simulated clouds, and what a chaotic demo does to it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from infra.local.clouds.arm import SimulatedArm
from infra.local.clouds.arm.cloud import ArmCloud
from infra.local.clouds.compute import ComputeCloud, SimulatedCompute
from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server
from infra.local.scripts import CHAOS, PLAIN
from infra.local.simulated import control_document
from infra.local.standing import Machine, Standing, look, tell
from infra.local.trouble import Trouble
from tests.infra.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

POOL = "proj/pool"


@pytest.fixture(scope="module")
def urls() -> Iterator[Mapping[str, str]]:
    """Two machines of one pool in each cloud, which has what a chaotic demo tells it."""
    with ExitStack() as served:
        found = {
            "ec2": served.enter_context(Ec2Server(Ec2Cloud())).url,
            "compute": served.enter_context(SimulatedCompute(ComputeCloud())).url,
            "arm": served.enter_context(SimulatedArm(ArmCloud())).url,
        }
        for cloud, url in found.items():
            tell(url, control_document(cloud, CHAOS.clouds[cloud]))
        labels = {"worker-manager-provisioner": "proj", "worker-manager-worker-type": "pool"}
        tags = {"worker-manager:pool": POOL}
        tell(found["ec2"], {"seed": [{"region": "us-east-1", "number": 2, "tags": tags}]})
        tell(
            found["compute"],
            {"seed": [{"zone": "us-central1-a", "number": 2, "labels": labels}]},
        )
        tell(found["arm"], {"seed": [{"group": "simulated-workers", "number": 2, "tags": tags}]})
        yield found


def test_what_stands_is_told_by_pool_and_taken_from_each_cloud_until_it_is_calm(
    urls: Mapping[str, str],
) -> None:
    clock = VirtualClock()
    trouble = Trouble(urls, CHAOS, clock=clock)
    before = look(urls)
    assert before.running == {POOL: 6}
    assert {machine.cloud for machine in before.machines} == set(urls)
    assert "2 arm networkInterfaces" in before.in_words()

    trouble.go_on(before)
    assert look(urls).running == {POOL: 6}
    clock.advance(CHAOS.kill_seconds + 1)
    trouble.go_on(look(urls))
    after = look(urls)
    assert after.running == {POOL: 3}
    assert "2 arm networkInterfaces" in after.in_words()
    assert trouble.in_words() == "machines killed: 3 deleted by hand"

    clock.advance(CHAOS.trouble_seconds)
    trouble.go_on(after)
    assert not trouble.is_on
    trouble.go_on(after)
    assert look(urls).running == {POOL: 3}


def test_spot_machines_are_taken_back_as_each_cloud_does(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr("infra.local.trouble.tell", lambda url, given: told.append((url, given)))
    clock = VirtualClock()
    urls = {cloud: cloud for cloud in ("ec2", "compute", "arm")}
    trouble = Trouble(urls, CHAOS, clock=clock)
    spot = Standing(tuple(Machine(cloud, "m", POOL, runs=True, is_spot=True) for cloud in urls))

    for _ in range(8):
        clock.advance(CHAOS.kill_seconds + 1)
        trouble.go_on(spot)

    assert {"interrupt", "preempt", "evict", "forget"} <= {key for _, d in told for key in d}


def test_a_plain_script_troubles_nobody() -> None:
    trouble = Trouble({}, PLAIN)

    assert not trouble.is_on
    trouble.go_on(Standing())
    assert trouble.in_words() == "machines killed: none"
