"""The queues of the benchmarks keep SQS's promises."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest

from tests.benchmarks.delivery import Delivery
from worker_manager.queues import Message


def test_each_message_reaches_its_queues_handler() -> None:
    seen: list[Any] = []
    with Delivery(2) as delivery:
        delivery.handlers = {
            "a": seen.append,
            "b": lambda body: delivery.sender("a").send([Message(body)]),
        }
        delivery.sender("b").send([Message({"n": 1})])
        assert delivery.drain(seconds=60)
    assert seen == [{"n": 1}]
    assert delivery.delivered == 2


def test_messages_of_one_group_go_one_after_the_other() -> None:
    order: list[str] = []

    def handle(body: Any) -> None:
        order.append(f"begin {body['n']}")
        time.sleep(0.01)
        order.append(f"end {body['n']}")

    with Delivery(4) as delivery:
        delivery.handlers = {"a": handle}
        delivery.sender("a").send([Message({"n": n}, group="g") for n in range(3)])
        assert delivery.drain(seconds=60)
    assert order == [f"{word} {n}" for n in range(3) for word in ("begin", "end")]


def test_groups_go_side_by_side() -> None:
    met = Event()
    handlers = {"first": lambda: met.wait(60), "second": met.set}
    with Delivery(2) as delivery:
        delivery.handlers = {"a": lambda body: handlers[body["who"]]()}
        delivery.sender("a").send([Message({"who": name}, group=name) for name in handlers])
        assert delivery.drain(seconds=60)
    assert met.is_set()


def test_a_repeated_deduplication_id_is_one_message() -> None:
    seen: list[Any] = []
    with Delivery(1) as delivery:
        delivery.handlers = {"a": seen.append}
        delivery.sender("a").send([Message({"n": n}, group="g", dedup="same") for n in range(2)])
        assert delivery.drain(seconds=60)
    assert seen == [{"n": 0}]


def test_a_delayed_message_is_waited_for() -> None:
    seen: list[Any] = []
    with Delivery(1) as delivery:
        delivery.handlers = {"a": seen.append}
        delivery.sender("a").send([Message({"n": 1}, delay=3600)])
        assert not delivery.drain(seconds=0.05)
    assert seen == []


def test_what_a_handler_raises_comes_out() -> None:
    with Delivery(1) as delivery:
        delivery.handlers = {}
        delivery.sender("nobody").send([Message({})])
        with pytest.raises(KeyError, match="nobody"):
            delivery.drain(seconds=60)


def test_a_queue_apart_waits_for_no_other_one() -> None:
    busy, done = Event(), Event()

    def block(_: Any) -> None:
        busy.set()
        assert done.wait(60)

    with Delivery(1, apart={"b": 1}) as delivery:
        delivery.handlers = {"a": block, "b": lambda _: done.set()}
        delivery.sender("a").send([Message({})])
        assert busy.wait(60)
        delivery.sender("b").send([Message({})])
        assert delivery.drain(seconds=60)


def test_delays_are_as_short_as_the_speed_makes_them() -> None:
    seen: list[Any] = []
    with Delivery(1, speed=100_000) as delivery:
        delivery.handlers = {"a": seen.append}
        delivery.sender("a").send([Message({"n": 1}, delay=3600)])
        assert delivery.drain(seconds=60)
    assert seen == [{"n": 1}]
