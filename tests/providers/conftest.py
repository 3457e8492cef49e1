"""Fixtures for the clouds in ``stages``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest

from infra.local.clouds.arm import ArmCloud, SimulatedArm
from infra.local.clouds.compute import ComputeCloud, SimulatedCompute
from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server
from tests.providers.orders import OREGON
from tests.providers.stages import Ec2Stage, FakeStage, NamingStage, SteppingStage
from tests.providers.stages_azure import AZURE_BODY, AZURE_TEMPLATE_BODY, AzureStage
from tests.providers.stages_google import GoogleStage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.providers.contract import Stage, StepwiseStage


@pytest.fixture(scope="session")
def ec2_server() -> Iterator[Ec2Server]:
    with Ec2Server(Ec2Cloud()) as server:
        yield server


@pytest.fixture(scope="session")
def ec2_session() -> boto3.Session:
    return boto3.Session("testing", "testing", region_name=OREGON)


@pytest.fixture
def ec2(
    ec2_server: Ec2Server, ec2_session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> Ec2Stage:
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", ec2_server.url)
    return Ec2Stage(ec2_server, ec2_session)


@pytest.fixture(scope="session")
def arm_server() -> Iterator[SimulatedArm]:
    with SimulatedArm(ArmCloud()) as server:
        yield server


@pytest.fixture
def azure(arm_server: SimulatedArm) -> AzureStage:
    return AzureStage(arm_server, AZURE_BODY)


@pytest.fixture
def azure_by_template(arm_server: SimulatedArm) -> AzureStage:
    return AzureStage(arm_server, AZURE_TEMPLATE_BODY)


@pytest.fixture(scope="session")
def compute_server() -> Iterator[SimulatedCompute]:
    with SimulatedCompute(ComputeCloud()) as server:
        yield server


@pytest.fixture
def google(compute_server: SimulatedCompute) -> GoogleStage:
    return GoogleStage(compute_server)


@pytest.fixture
def fake() -> FakeStage:
    return FakeStage()


@pytest.fixture
def stepping() -> SteppingStage:
    return SteppingStage()


@pytest.fixture
def naming() -> NamingStage:
    return NamingStage()


@pytest.fixture(
    params=["fake", "stepping", "naming", "ec2", "google", "azure", "azure_by_template"]
)
def stage(request: pytest.FixtureRequest) -> Stage:
    """Each cloud."""
    chosen: Stage = request.getfixturevalue(str(request.param))
    return chosen


@pytest.fixture(params=["fake", "ec2"])
def whole_stage(request: pytest.FixtureRequest) -> Stage:
    """Each cloud that takes an order of many machines as one, and tells of some on its own."""
    chosen: Stage = request.getfixturevalue(str(request.param))
    return chosen


@pytest.fixture(params=["stepping", "naming", "google", "azure", "azure_by_template"])
def stepwise(request: pytest.FixtureRequest) -> StepwiseStage:
    """Each cloud that accepts a launch first, and makes the machine afterwards."""
    chosen: StepwiseStage = request.getfixturevalue(str(request.param))
    return chosen
