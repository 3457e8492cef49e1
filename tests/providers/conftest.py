"""Fixtures for the clouds in ``stages``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest

from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server
from tests.providers.orders import OREGON
from tests.providers.stages import Ec2Stage, FakeStage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.providers.contract import Stage


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


@pytest.fixture
def fake() -> FakeStage:
    return FakeStage()


@pytest.fixture(params=["fake", "ec2"])
def stage(request: pytest.FixtureRequest) -> Stage:
    chosen: Stage = request.getfixturevalue(str(request.param))
    return chosen
