from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.wire import Wire

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables


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
