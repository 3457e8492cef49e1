"""A stage in moto with a simulated EC2, and requests signed for its root URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server
from tests.functions.deployed import DeployedStage
from tests.functions.running import RunningStage
from tests.http_server import serving
from tests.infra.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def deployed() -> Iterator[DeployedStage]:
    """The stage alone: nothing answers at its root URL."""
    with mock_aws():
        yield DeployedStage({"TickSeconds": "30"})


@pytest.fixture(scope="module")
def shared() -> Iterator[DeployedStage]:
    """One stage for tests that leave nothing behind."""
    with mock_aws():
        yield DeployedStage({"TickSeconds": "30"})


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningStage]:
    """The stage with a task queue at its root URL and machines to launch."""
    clock = VirtualClock()
    with mock_aws(), Ec2Server(Ec2Cloud(clock=clock)) as ec2:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", ec2.url)
        made: list[RunningStage] = []

        def behind(root_url: str) -> RunningStage:
            made.append(RunningStage(root_url, ec2.cloud, clock))
            return made[0]

        with serving(lambda root_url: behind(root_url).answer):
            yield made[0]
