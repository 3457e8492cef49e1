"""The deployed system on the embedded emulator, one for all journeys, its clock stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests

from infra.local.machines import MachineFleet, Rules
from infra.local.stage import LocalStage
from tests.journeys.world import EC2_CONFIG, MACHINE_RULES, World

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGHTING_SECONDS = 2
"""A machine in a rack is missing after three times that, at the earliest."""

MACHINES = 14
"""As many as the tests together need that take one."""


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    folder = tmp_path_factory.mktemp("stage")
    with LocalStage(
        folder=folder,
        schedules=False,
        tick_seconds=30,
        timings={"sighting": SIGHTING_SECONDS},
        clouds={"ec2": EC2_CONFIG},
    ) as running:
        yield running


@pytest.fixture(scope="session")
def world(stage: LocalStage) -> Iterator[World]:
    """Clients of the stage."""
    with requests.Session() as http:
        http.trust_env = False
        yield World(stage, http)


@pytest.fixture(scope="session")
def fleet(stage: LocalStage) -> Iterator[MachineFleet]:
    """Machines on every instance, which do what stock workers do."""
    rules = Rules.from_document(MACHINE_RULES)
    with MachineFleet(stage.ec2_url, rules=rules, poll_seconds=0.2) as running:
        yield running


@pytest.fixture(scope="session")
def machines(world: World) -> list[dict[str, Any]]:
    """Requested workers, whose machines run and leave it to the tests to speak."""
    return world.launched("journey/deaf", MACHINES)


@pytest.fixture
def machine(machines: list[dict[str, Any]]) -> dict[str, Any]:
    """A worker that no other test has."""
    return machines.pop()
