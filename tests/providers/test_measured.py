"""Counting what a provider is asked."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.providers.orders import OREGON, an_order, worker_of
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.providers.fake import Method
from worker_manager.providers.measured import MeasuredProvider, Usage

if TYPE_CHECKING:
    from tests.providers.stages import FakeStage


@pytest.fixture
def measured(fake: FakeStage) -> MeasuredProvider:
    ticks = count()
    return MeasuredProvider(fake.provider, monotonic=lambda: float(next(ticks)))


def test_calls_and_seconds_are_counted_by_method(measured: MeasuredProvider) -> None:
    (machine,) = measured.launch(an_order(count=1)).machines
    workers = [worker_of(machine)]
    assert measured.lookup(OREGON, workers).keys() == {machine.key}
    measured.terminate(workers)
    measured.terminate(workers)
    assert measured.usage == {
        "launch": Usage(calls=1, seconds=1.0),
        "lookup": Usage(calls=1, seconds=1.0),
        "terminate": Usage(calls=2, seconds=2.0),
    }


def test_a_list_is_one_call_however_many_it_names(measured: MeasuredProvider) -> None:
    measured.launch(an_order(count=3))
    assert len(list(measured.instances(OREGON))) == 3
    assert measured.usage["instances"].calls == 1


def test_errors_are_counted_and_passed_on(fake: FakeStage, measured: MeasuredProvider) -> None:
    fake.refuse(Method.LAUNCH, CloudUnavailableError)
    fake.lose_answer(Method.INSTANCES)
    with pytest.raises(CloudUnavailableError):
        measured.launch(an_order())
    with pytest.raises(CloudUnavailableError):
        list(measured.instances(OREGON))
    assert (measured.usage["launch"].calls, measured.usage["launch"].errors) == (1, 1)
    assert (measured.usage["instances"].calls, measured.usage["instances"].errors) == (1, 1)


def test_it_stands_for_the_provider_it_measures(measured: MeasuredProvider) -> None:
    assert measured.provider_id == "aws"
    assert measured.locations([]) == frozenset()
    assert measured.usage == {}
