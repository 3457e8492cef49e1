"""A simulated EC2 on loopback with a clock that stands still, and the real SDK to drive it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server, SigningKey
from tests.infra.virtual_clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_ec2 import EC2Client


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
                config=Config(retries={"total_max_attempts": 1}, read_timeout=10),
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
