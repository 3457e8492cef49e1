"""Worlds on in-memory tables, as many as a test wants, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import Session
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from tests.reconcile.naming import NamingWorld, SteppingWorld
from tests.reconcile.world import World
from worker_manager.store.tables import TABLES, Tables
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SESSION = Session()
REGION = "us-east-1"


@pytest.fixture
def alarms_only() -> Iterator[None]:
    """Log nothing but what is wrong."""
    before = logger.log_level
    logger.setLevel("WARNING")
    yield
    logger.setLevel(before)


@pytest.fixture(scope="module")
def shared_tables() -> Iterator[Tables]:
    """Tables that the worlds of a module use one after the other: making them takes long."""
    with mock_aws():
        tables = Tables.bind({name: name for name in TABLES}, SESSION, REGION)
        for name in TABLES:
            getattr(tables, name).create_table(billing_mode="PAY_PER_REQUEST")
        yield tables


@pytest.fixture
def new_world(shared_tables: Tables, alarms_only: None) -> Callable[..., World]:
    """A world with empty tables each time; the one before it is over then."""
    stored = dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables

    def make(kind: type[World] = World, **options: Any) -> World:
        for name in TABLES:
            stored[name].items.clear()
        return kind(shared_tables, **options)

    return make


@pytest.fixture
def new_naming(new_world: Callable[..., World]) -> Callable[..., NamingWorld]:
    """As ``new_world``, of a cloud that takes names from us."""

    def make(**options: Any) -> NamingWorld:
        world = new_world(NamingWorld, **options)
        assert isinstance(world, NamingWorld)
        return world

    return make


@pytest.fixture
def naming(new_naming: Callable[..., NamingWorld]) -> NamingWorld:
    return new_naming()


@pytest.fixture
def stepping(new_world: Callable[..., World]) -> SteppingWorld:
    """A world of a cloud that accepts first and chooses the names."""
    world = new_world(SteppingWorld)
    assert isinstance(world, SteppingWorld)
    return world


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world()
