"""The bill's arithmetic, with deeds that nobody measured."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.benchmarks.assumptions import Assumptions, assumptions_table
from tests.benchmarks.bill import (
    DAY,
    LAMBDA_PROCESSOR_MB,
    Bill,
    Line,
    Standing,
    bill_table,
    bills,
    gb_seconds,
    words,
)
from tests.benchmarks.metering import metrics_in
from tests.benchmarks.prices import DAYS_A_MONTH, HOURS_A_MONTH, PRICES, Price
from tests.benchmarks.scene import Deed, Deeds
from tests.benchmarks.usage import Usage
from tests.benchmarks.writes import LocalIndex, units_of_change

ASSUMED = Assumptions(pools=10, workers=100)
NOTHING = Standing(metrics=0, alarms=0, dashboards=0, secrets=0)
POLL = "shouldWorkerTerminate"


def some_deeds(**usages: Usage) -> Deeds:
    """Deeds that use nothing, but for those given (by name, ``_`` for a space)."""
    given = {name.replace("_", " "): usage for name, usage in usages.items()}
    deeds = Deeds(scans=20)
    for name in DAY:
        deeds.by_name[name] = Deed("function", 512, given.get(name, Usage()))
    return deeds


def line_of(bill: Bill, key: str) -> Line:
    return next(line for line in bill.lines if line.key == key)


def test_usages_add_up_and_multiply() -> None:
    one = Usage(calls=1, read_units=0.5)
    assert (one + one).times(3) == Usage(calls=6, read_units=3)
    assert one + one - one == one


def test_a_price_falls_by_its_tiers() -> None:
    price = Price("x", "y", 1.0, 10, tiers=((100, 3.0), (200, 2.0)))
    assert price.of(50) == 15
    assert price.of(100) == 30
    assert price.of(150) == 40
    assert price.of(300) == 60


def test_api_gateways_price_has_the_published_tiers() -> None:
    million = 1_000_000
    assert PRICES["rest_requests"].of(333 * million) == pytest.approx(1_165.5)
    assert PRICES["rest_requests"].of(334 * million) == pytest.approx(1_168.3)


def test_less_memory_makes_the_processor_slower_but_waits_cheaper() -> None:
    busy = Deed("f", LAMBDA_PROCESSOR_MB, Usage(cpu_seconds=1))
    assumed = replace(ASSUMED, cpu_factor=1)
    whole = gb_seconds(busy, assumed)
    assert whole == pytest.approx(LAMBDA_PROCESSOR_MB / 1_024)
    assert gb_seconds(replace(busy, memory_mb=512), assumed) == pytest.approx(whole)
    waiting = Deed("f", 512, Usage(asked_ec2=10))
    assert gb_seconds(waiting, assumed) == pytest.approx(0.5 * 10 * assumed.ec2_wait)


def test_polls_follow_from_who_waits_and_who_works() -> None:
    waiting = DAY[POLL](replace(ASSUMED, waiting_share=1), Deeds())
    working = DAY[POLL](replace(ASSUMED, waiting_share=0), Deeds())
    assert waiting == pytest.approx(100 * 86_400 / 20)
    assert working == pytest.approx(100 * 86_400 / 1_200)


def test_ticks_and_scans_follow_from_the_fleet() -> None:
    assert DAY["look at a pool"](ASSUMED, Deeds()) == 10 * 2_880
    assert DAY["look at a pool's machines in a region"](ASSUMED, Deeds(scans=40)) == 40 * 1_440
    assert DAY["registerWorker"](ASSUMED, Deeds()) == 100 * 24 / ASSUMED.life_hours


def test_a_month_of_deeds_is_priced_by_what_it_uses_and_why() -> None:
    deeds = some_deeds(look_at_a_pool=Usage(calls=1, read_units=4), scan_tick=Usage(calls=1))
    rest, _ = bills(deeds, ASSUMED, NOTHING)
    reads = line_of(rest, "dynamodb_reads")
    assert reads.amount == pytest.approx(10 * 2_880 * 4 * DAYS_A_MONTH)
    assert reads.usd == pytest.approx(reads.amount * 0.125 / 1e6)
    assert reads.reason == "look at a pool (100%)"
    calls = line_of(rest, "lambda_requests")
    assert calls.amount == pytest.approx((10 * 2_880 + 1_440) * DAYS_A_MONTH)
    assert calls.reason == "look at a pool (95%)"


def test_each_message_is_sent_received_and_deleted() -> None:
    sent = Usage(sqs_sent=1, fifo_messages=10)
    rest, _ = bills(some_deeds(provision_tick=sent), ASSUMED, NOTHING)
    assert line_of(rest, "sqs_fifo").amount == pytest.approx((1 + 10 * 2) * 2_880 * DAYS_A_MONTH)


def test_the_front_door_is_all_that_differs() -> None:
    deeds = some_deeds(**{POLL: Usage(calls=1, came_in=1_500, went_out=500)})
    rest, alb = bills(deeds, ASSUMED, NOTHING)
    doors = {"rest_requests", "alb_hours", "alb_address_hours", "alb_lcu_hours"}
    same = [[line for line in bill.lines if line.key not in doors] for bill in (rest, alb)]
    assert same[0] == same[1]
    assert line_of(rest, "rest_requests").amount == pytest.approx(
        DAY[POLL](ASSUMED, deeds) * DAYS_A_MONTH
    )
    assert line_of(alb, "alb_hours").usd == pytest.approx(HOURS_A_MONTH * 0.0225)


def test_the_largest_measure_of_a_load_balancer_is_what_is_paid() -> None:
    deeds = some_deeds(**{POLL: Usage(calls=1, came_in=1)})
    few = replace(ASSUMED, workers=6_000, requests_a_connection=1e9)
    units = line_of(bills(deeds, few, NOTHING)[1], "alb_lcu_hours")
    assert units.reason.startswith("open connections")
    assert units.amount == pytest.approx(2 * HOURS_A_MONTH)
    many = replace(few, requests_a_connection=1, connection_bytes=0)
    assert line_of(bills(deeds, many, NOTHING)[1], "alb_lcu_hours").reason.startswith("new")


def test_the_table_names_every_item_and_the_sum_of_each_door() -> None:
    deeds = some_deeds(**{POLL: Usage(calls=1, came_in=1_500, went_out=500)})
    both = bills(deeds, ASSUMED, replace(NOTHING, secrets=3))
    table = bill_table(both)
    assert "| Secrets Manager: secrets | 3 | 1.20 | 1.20 |  |" in table
    assert f"**{both[0].usd:,.2f}** | **{both[1].usd:,.2f}**" in table
    assert "API Gateway: REST requests" in words(both, 100.0)
    assert both[0].to_json()["largest"]["item"] == "API Gateway: REST requests"


def test_every_assumption_says_why() -> None:
    table = assumptions_table(ASSUMED)
    assert all(f.metadata["why"] in table for f in fields(Assumptions))


def test_a_write_costs_the_larger_of_before_and_after() -> None:
    small, large = ({"k": {"S": "x" * size}} for size in (100, 3_000))
    assert units_of_change(None, small) == 1
    assert units_of_change(large, small) == 3
    assert units_of_change(small, None) == 1


def test_an_index_costs_what_it_shows() -> None:
    index = LocalIndex("live", {"pk", "live", "state"})
    running = {"pk": {"S": "p"}, "live": {"S": "1"}, "state": {"S": "running"}}
    hidden = {**running, "secret": {"S": "s"}}
    moved = {**running, "live": {"S": "2"}}
    gone = {"pk": {"S": "p"}, "state": {"S": "stopped"}}
    assert units_of_change(None, running, [index]) == 2
    assert units_of_change(running, hidden, [index]) == 1
    assert units_of_change(running, moved, [index]) == 3
    assert units_of_change(running, gone, [index]) == 2
    assert units_of_change(None, gone, [index]) == 1


def test_metrics_are_told_apart_by_their_dimensions() -> None:
    line = (
        '{"_aws": {"CloudWatchMetrics": [{"Namespace": "N", "Dimensions": [["Provider"]],'
        ' "Metrics": [{"Name": "Pools"}, {"Name": "Ticks"}]}]}, "Provider": "aws", "Pools": 1}'
    )
    other = line.replace('"aws"', '"static"')
    assert len(metrics_in("\n".join([line, line, other, '{"message": "no metric"}']))) == 4
