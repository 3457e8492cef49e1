"""Who holds room in a store that pools share."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW
from tests.store.wire import cancelled, lost
from worker_manager.store.slots import SlotStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tests.store.wire import Wire
    from worker_manager.store.tables import Tables

HOUR = timedelta(hours=1)


def names(count: int, first: int = 0) -> list[str]:
    return [f"vm-{number}" for number in range(first, first + count)]


class Shelf:
    """One store with room for ten."""

    def __init__(self, tables: Tables, name: str = "rg-1", most: int = 10) -> None:
        self.slots = SlotStore(tables)
        self.name = name
        self.most = most

    def take(self, order_id: str, machines: Collection[str], *, hour: int = 0) -> bool:
        moment = NOW + hour * HOUR
        return self.slots.take("azure", self.name, order_id, machines, most=self.most, now=moment)

    def give_back(self, order_id: str, machines: Collection[str]) -> None:
        self.slots.give_back("azure", self.name, order_id, machines)

    @property
    def used(self) -> int:
        return self.slots.used("azure", self.name)


@pytest.fixture
def shelf(tables: Tables) -> Shelf:
    return Shelf(tables)


def test_orders_hold_no_more_than_there_is_room_for(shelf: Shelf) -> None:
    assert shelf.take("o-1", names(6))
    assert not shelf.take("o-2", names(5))
    assert shelf.take("o-3", names(4))
    assert shelf.used == 10

    shelf.give_back("o-1", names(1))

    assert shelf.take("o-4", names(1))
    assert shelf.used == 10


def test_an_order_larger_than_the_store_never_fits(shelf: Shelf) -> None:
    assert not shelf.take("o-1", names(11))
    assert shelf.used == 0


def test_an_order_that_is_sent_again_holds_what_it_held(shelf: Shelf) -> None:
    assert shelf.take("o-1", names(10))
    assert shelf.take("o-1", names(10))
    assert shelf.used == 10

    shelf.give_back("o-1", names(10))
    assert shelf.take("o-1", names(10)), "its machines were made: it needs no room again"
    assert shelf.used == 0


def test_a_slot_that_is_given_back_twice_is_free_once(shelf: Shelf) -> None:
    shelf.take("o-1", names(3))
    shelf.take("o-2", names(3))
    for _ in range(3):
        shelf.give_back("o-1", ["vm-0"])
        shelf.give_back("o-1", ["vm-0", "vm-1"])
        shelf.give_back("o-1", ["vm-of-somebody-else"])
        shelf.give_back("o-unknown", names(3))

    assert shelf.used == 4


def test_stores_and_providers_have_room_of_their_own(tables: Tables, shelf: Shelf) -> None:
    shelf.take("o-1", names(10))

    assert Shelf(tables, "rg-2").take("o-1", names(10))
    assert shelf.slots.take("azure-2", "rg-1", "o-1", names(10), most=10, now=NOW)


def test_what_is_held_too_long_is_taken_back(shelf: Shelf) -> None:
    shelf.take("o-old", names(4))
    shelf.give_back("o-old", names(1))
    shelf.take("o-done", names(2))
    shelf.give_back("o-done", names(2))
    shelf.take("o-new", names(4), hour=3)

    assert shelf.slots.take_back("azure", before=NOW + HOUR) == 3
    assert shelf.slots.take_back("azure", before=NOW + HOUR) == 0

    assert shelf.used == 4
    shelf.give_back("o-old", names(4))
    assert shelf.used == 4, "it is forgotten"


def test_an_answer_that_was_lost_counts_nothing_twice(shelf: Shelf, wire: Wire) -> None:
    wire.inject("TransactWriteItems", lost)
    assert shelf.take("o-1", names(4))
    assert shelf.used == 4

    wire.inject("TransactWriteItems", lost)
    shelf.give_back("o-1", names(3))
    assert shelf.used == 1


def test_a_collision_with_another_order_is_tried_again(
    shelf: Shelf, wire: Wire, pauses: list[float]
) -> None:
    wire.inject("TransactWriteItems", cancelled("TransactionConflict", ""))

    assert shelf.take("o-1", names(4))

    assert shelf.used == 4
    assert len(pauses) == 1


def before_the_write(wire: Wire, act: Callable[[], object]) -> None:
    """Let somebody else act between what is read and what is written next."""

    def intrude(call: Any, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        act()
        answer: dict[str, Any] = call(operation, parameters)
        return answer

    wire.inject("TransactWriteItems", intrude)


@pytest.mark.parametrize(("others", "fits"), [(6, True), (7, False)])
def test_orders_sent_at_once_never_hold_more_than_there_is_room_for(
    shelf: Shelf, wire: Wire, others: int, fits: bool
) -> None:
    before_the_write(wire, lambda: shelf.take("o-2", names(others)))

    assert shelf.take("o-1", names(4)) is fits

    assert shelf.used == others + 4 * fits


def test_an_order_sent_twice_at_once_holds_its_slots_once(shelf: Shelf, wire: Wire) -> None:
    before_the_write(wire, lambda: shelf.take("o-1", names(4)))

    assert shelf.take("o-1", names(4))

    assert shelf.used == 4


def test_slots_given_back_at_once_are_each_free_once(shelf: Shelf, wire: Wire) -> None:
    shelf.take("o-1", names(4))
    before_the_write(wire, lambda: shelf.give_back("o-1", ["vm-0", "vm-1"]))

    shelf.give_back("o-1", ["vm-1", "vm-2"])

    assert shelf.used == 1


def test_the_count_is_always_what_orders_hold(shelf: Shelf) -> None:
    chance = Random(7)
    held: dict[str, set[str]] = {}
    for _ in range(60):
        order = f"o-{chance.randrange(8)}"
        machines = set(chance.sample(names(6), chance.randint(1, 4)))
        if chance.random() < 0.5:
            fits = sum(map(len, held.values())) + len(machines) <= shelf.most
            assert shelf.take(order, machines) == (order in held or fits)
            if fits:
                held.setdefault(order, machines)
        else:
            shelf.give_back(order, machines)
            if order in held:
                held[order] -= machines
        assert shelf.used == sum(map(len, held.values())) <= shelf.most
