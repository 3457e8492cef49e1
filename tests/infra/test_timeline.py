"""The timeline: what is told of a decision."""

from __future__ import annotations

from infra.local.timeline import decision_lines
from tests.factories import a_plan, an_order


def test_orders_come_first_and_every_reason_has_its_line() -> None:
    orders = (an_order("o-1", count=3), an_order("o-2", launch_config_id="lc-b", count=2))
    plan = a_plan(orders=orders, reasons=("tasks are waiting", "eu-west-1 asked to wait"))

    assert [line.strip(" ·") for line in decision_lines(plan)] == [
        f"+5: 3 of lc-a in {orders[0].location}, 2 of lc-b in {orders[1].location}",
        "tasks are waiting",
        "eu-west-1 asked to wait",
    ]


def test_what_was_refused_is_not_told_as_launched() -> None:
    full = {"code": "InsufficientInstanceCapacity"}
    orders = (
        an_order("o-1", count=3, launched=1, error=full),
        an_order("o-2", launch_config_id="lc-b", count=2, error=full),
    )

    told = [
        line.strip(" ·") for line in decision_lines(a_plan(orders=orders, reasons=("tasks wait",)))
    ]

    assert told == [
        f"+1: 1 of lc-a in {orders[0].location}",
        f"refused: 2 of lc-a in {orders[0].location} (InsufficientInstanceCapacity)",
        f"refused: 2 of lc-b in {orders[1].location} (InsufficientInstanceCapacity)",
        "tasks wait",
    ]


def test_a_decision_without_orders_and_reasons_says_so() -> None:
    assert [line.strip(" ·") for line in decision_lines(a_plan(orders=()))] == ["no more is wanted"]


def test_a_mark_tells_where_a_decision_begins() -> None:
    marked = [
        "·" in line
        for plan in (a_plan(reasons=("tasks wait",)), a_plan(orders=()))
        for line in decision_lines(plan)
    ]

    assert marked == [True, False, True]


def test_no_line_is_wider_than_a_terminal() -> None:
    orders = tuple(an_order(f"o-{n}", launch_config_id=f"lc-{n:020}") for n in range(20))

    assert max(map(len, decision_lines(a_plan(orders=orders)))) <= 100
