"""Simulated clouds on loopback with a clock that stands still, and the real SDKs to drive them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from infra.local.clouds.arm import ArmCloud, SimulatedArm
from infra.local.clouds.compute import ComputeCloud, SimulatedCompute
from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server, SigningKey
from tests.infra.arm_calls import Arm
from tests.infra.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_ec2 import EC2Client

    from tests.infra.compute_calls import Compute


@pytest.fixture(scope="session")
def signing_key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture(scope="session")
def one_ec2_server() -> Iterator[Ec2Server]:
    with Ec2Server(Ec2Cloud()) as server:
        yield server


@pytest.fixture(scope="session")
def ec2_in(one_ec2_server: Ec2Server) -> Iterator[Callable[[str], EC2Client]]:
    """A client for a region; it neither retries nor waits long."""
    session = boto3.Session()
    made: dict[str, EC2Client] = {}

    def client(region: str) -> EC2Client:
        if region not in made:
            made[region] = session.client(
                "ec2",
                region_name=region,
                endpoint_url=one_ec2_server.url,
                aws_access_key_id="AKIDSIMULATED",
                aws_secret_access_key="simulated",
                config=Config(retries={"total_max_attempts": 1}, read_timeout=60),
            )
        return made[region]

    yield client
    for one in made.values():
        one.close()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def cloud(one_ec2_server: Ec2Server, clock: VirtualClock, signing_key: SigningKey) -> Ec2Cloud:
    one_ec2_server.cloud = Ec2Cloud(clock=clock, rng=Random(7), key=signing_key)
    return one_ec2_server.cloud


@pytest.fixture
def ec2(cloud: Ec2Cloud, ec2_in: Callable[[str], EC2Client]) -> EC2Client:
    assert cloud.instances() == []
    return ec2_in("us-east-1")


@pytest.fixture(scope="session")
def one_compute_server() -> Iterator[SimulatedCompute]:
    with SimulatedCompute(ComputeCloud()) as server:
        yield server


@pytest.fixture(scope="session")
def one_compute_client(one_compute_server: SimulatedCompute) -> Compute:
    """The SDK takes its time to be imported: only those wait for it who use it."""
    from tests.infra.compute_calls import Compute

    return Compute(one_compute_server.url)


@pytest.fixture
def compute_cloud(
    one_compute_server: SimulatedCompute, clock: VirtualClock, signing_key: SigningKey
) -> ComputeCloud:
    one_compute_server.cloud = ComputeCloud(clock=clock, rng=Random(7), key=signing_key)
    return one_compute_server.cloud


@pytest.fixture
def compute(compute_cloud: ComputeCloud, one_compute_client: Compute) -> Compute:
    assert compute_cloud.instances() == []
    return one_compute_client


@pytest.fixture(scope="session")
def one_arm(signing_key: SigningKey) -> Iterator[tuple[SimulatedArm, Arm]]:
    with SimulatedArm(ArmCloud(key=signing_key)) as server:
        clients = Arm(server.url)
        yield server, clients
        clients.close()


@pytest.fixture
def arm(one_arm: tuple[SimulatedArm, Arm], clock: VirtualClock, signing_key: SigningKey) -> Arm:
    server, clients = one_arm
    clients.clock = clock
    clients.cloud = server.cloud = ArmCloud(clock=clock, rng=Random(7), key=signing_key)
    return clients
