"""Worlds on in-memory tables, as many as a test wants, each with tables of its own."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import Session
from moto import mock_aws
from moto.core.serialize import ResponseSerializer

from tests.reconcile.world import World
from worker_manager.store.tables import TABLES, Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SESSION = Session()


@pytest.fixture
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let moto write attribute values as they are.

    It looks for each of a value's ten possible types under six spellings, which takes most of the
    time of these tests; DynamoDB's types have one spelling.
    """
    slow = ResponseSerializer.get_value

    def get_value(self: ResponseSerializer, value: Any, key: str, shape: Any) -> Any:
        if isinstance(value, dict) and shape.parent.name == "AttributeValue":
            return value.get(key)
        return slow(self, value, key, shape)

    monkeypatch.setattr(ResponseSerializer, "get_value", get_value)


@pytest.fixture
def new_world(
    monkeypatch: pytest.MonkeyPatch, quick_answers: None
) -> Iterator[Callable[..., World]]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "dead",
        "AWS_SECRET_ACCESS_KEY": "dead",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    numbers = count()

    def make(**options: Any) -> World:
        number = next(numbers)
        tables = Tables.bind({name: f"{name}-{number}" for name in TABLES}, SESSION, "us-east-1")
        for name in TABLES:
            getattr(tables, name).create_table(billing_mode="PAY_PER_REQUEST")
        return World(tables, **options)

    with mock_aws():
        yield make


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world()
