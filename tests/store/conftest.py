from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from moto.core.serialize import ResponseSerializer

from tests.store.wire import Wire

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables


@pytest.fixture(autouse=True)
def _quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let moto write attribute values as they are; it looks for each type in six spellings."""
    slow = ResponseSerializer.get_value

    def get_value(self: ResponseSerializer, value: Any, key: str, shape: Any) -> Any:
        if isinstance(value, dict) and shape.parent.name == "AttributeValue":
            return value.get(key)
        return slow(self, value, key, shape)

    monkeypatch.setattr(ResponseSerializer, "get_value", get_value)


@pytest.fixture
def wire(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Wire:
    tapped = Wire()
    tapped.tap(tables.connection, monkeypatch)
    return tapped


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long somebody would have slept between attempts."""
    slept: list[float] = []
    monkeypatch.setattr("worker_manager.store.transactions.time.sleep", slept.append)
    return slept
