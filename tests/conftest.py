"""For every test: an environment that reaches nothing, in UTC, and tables that exist in memory."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import hypothesis
import pytest
from botocore.session import Session
from moto import mock_aws

from tests.quick_moto import hurry
from worker_manager.store.tables import TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-east-1"
SESSION = Session()

hypothesis.settings.register_profile("reproducible", deadline=None, derandomize=True)
hypothesis.settings.load_profile("reproducible")


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


@pytest.fixture
def tables() -> Iterator[Tables]:
    """Every table, empty, made from the models: keys, local index and all."""
    with mock_aws():
        bound = Tables.bind({name: f"test-{name}" for name in TABLES}, SESSION, REGION)
        for name in TABLES:
            getattr(bound, name).create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        yield bound
