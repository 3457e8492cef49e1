"""What the registry's table counts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.factories import NOW
from tests.registry_tables import a_registry

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

MINUTE = timedelta(minutes=1)


def test_a_minute_allows_so_much_and_the_next_one_as_much_again(tables: Tables) -> None:
    table = a_registry(tables).table
    assert [table.take("x", NOW, 2, most=5) for _ in range(3)] == [True, True, False]
    assert table.take("x", NOW, 1, most=5)
    assert not table.take("x", NOW, 1, most=5)
    assert table.take("y", NOW, 5, most=5)
    assert table.take("x", NOW + MINUTE, 5, most=5)
