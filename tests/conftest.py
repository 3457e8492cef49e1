"""For every test: an environment that reaches nothing, in UTC, and tables that exist in memory."""

from __future__ import annotations

import gc
import os
import time
from typing import TYPE_CHECKING

import hypothesis
import pytest
from botocore.session import Session
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from tests.quick_moto import hurry
from worker_manager.store.tables import TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moto.dynamodb.models.table import Table

REGION = "us-east-1"
SESSION = Session()
JOURNEYS = ("benchmarks", "journeys")
"""Folders; see the Makefile."""

hypothesis.settings.register_profile("reproducible", deadline=None, derandomize=True)
hypothesis.settings.load_profile("reproducible")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """``make test`` looks for journeys in two folders only: importing all takes long."""
    for item in items:
        if item.get_closest_marker("journey") and item.path.parent.name not in JOURNEYS:
            raise pytest.UsageError(f"{item.nodeid} is a journey, but in neither of {JOURNEYS}")


def pytest_collection_finish() -> None:
    """What was imported stays: looking through it for garbage again and again takes long."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _cleaned_environment() -> Iterator[None]:
    """No account, service or time zone of whoever runs the tests shows in them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("AWS_", "TASKCLUSTER_")):
                patch.delenv(name)
        for name, value in {
            "AWS_ACCESS_KEY_ID": "dead",
            "AWS_SECRET_ACCESS_KEY": "dead",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "TZ": "UTC",
        }.items():
            patch.setenv(name, value)
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(autouse=True, scope="session")
def _quick_tables() -> Iterator[None]:
    """What moto does the long way round is done shorter."""
    with pytest.MonkeyPatch.context() as patch:
        hurry(patch)
        yield


@pytest.fixture(scope="session")
def _made_once() -> tuple[Tables, dict[str, Table]]:
    """The models over their tables, and moto's tables: making them takes long."""
    with mock_aws():
        bound = Tables.bind({name: f"test-{name}" for name in TABLES}, SESSION, REGION)
        for name in TABLES:
            getattr(bound, name).create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        return bound, dict(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables)


@pytest.fixture
def tables(_made_once: tuple[Tables, dict[str, Table]]) -> Iterator[Tables]:
    """Every table, empty, made from the models: keys, local index and all."""
    bound, made = _made_once
    with mock_aws():
        for table in made.values():
            table.items.clear()
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.update(made)
        yield bound
