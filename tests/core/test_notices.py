"""What a machine's notices and its cloud's answer say together."""

from __future__ import annotations

import pytest

from worker_manager.core.model import MachineStatus
from worker_manager.core.notices import fate

PENDING, RUNNING = MachineStatus.PENDING, MachineStatus.RUNNING
STOPPING, STOPPED, GONE = MachineStatus.STOPPING, MachineStatus.STOPPED, MachineStatus.GONE


@pytest.mark.parametrize("seen", MachineStatus)
@pytest.mark.parametrize("told", [[GONE], [GONE, STOPPING], [STOPPED, GONE], [None, GONE]])
def test_a_machine_that_is_told_to_be_gone_never_comes_back(
    told: list[MachineStatus | None], seen: MachineStatus
) -> None:
    assert fate(told, seen) is GONE


@pytest.mark.parametrize("seen", [PENDING, RUNNING, STOPPED])
def test_a_machine_that_is_told_to_be_deleted_is_although_the_answer_lags(
    seen: MachineStatus,
) -> None:
    assert fate([STOPPING], seen) is STOPPING


def test_an_answer_that_is_further_on_than_the_notice_counts() -> None:
    assert fate([STOPPED], GONE) is GONE
    assert fate([STOPPING], GONE) is GONE
    assert fate([None], STOPPING) is STOPPING


@pytest.mark.parametrize("seen", [PENDING, RUNNING])
def test_a_machine_that_was_stopped_and_started_again_is_not_stopped(
    seen: MachineStatus,
) -> None:
    assert fate([STOPPED], seen) is seen


def test_a_warning_alone_says_nothing_of_the_present() -> None:
    assert fate([None], RUNNING) is RUNNING
