"""Task queues of each kind, over tables that a module's tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.session import Session
from moto import mock_aws

from tests.registry.queue_world import World, a_world
from worker_manager.store.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def queue_tables() -> Iterator[Tables]:
    """Where worlds have their tables; the outbox is there."""
    with mock_aws():
        tables = Tables.bind({}, Session(), "us-east-1")
        tables.providers.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        yield tables


@pytest.fixture(params=["builtin", "remote", "events"])
def world(request: pytest.FixtureRequest, queue_tables: Tables) -> Iterator[World]:
    """A queue of each kind, one after the other."""
    yield from a_world(request.param, queue_tables)


@pytest.fixture
def remote(queue_tables: Tables) -> Iterator[World]:
    """A queue elsewhere."""
    yield from a_world("remote", queue_tables)
