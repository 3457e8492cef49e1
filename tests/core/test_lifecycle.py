from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, a_worker
from worker_manager.core.activity import Activity
from worker_manager.core.errors import CloudError, OutOfCapacityError
from worker_manager.core.lifecycle import (
    OUTSIDE,
    Gone,
    Keep,
    Launched,
    Note,
    Stop,
    StopAgain,
    Verdict,
    settle,
)
from worker_manager.core.model import MachineStatus, State, Surplus, Worker
from worker_manager.core.surplus import SPOT_INTERRUPTION
from worker_manager.core.timing import Timing

TIMING = Timing()
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LIVE = (State.REQUESTED, State.RUNNING, State.STOPPING)


def judge(
    worker: Worker,
    status: MachineStatus = MachineStatus.RUNNING,
    activity: Activity | None = None,
    *,
    known: bool = True,
    now: datetime = NOW,
    timing: Timing = TIMING,
    refusal: CloudError | None = None,
) -> Verdict:
    return settle(
        worker, status, activity, activity_known=known, now=now, timing=timing, refusal=refusal
    )


def busy(**overrides: Any) -> Activity:
    return Activity(**({"first_claim": NOW - HOUR, "last_active": NOW - MINUTE} | overrides))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            State.REQUESTED,
            Gone("the machine vanished before it registered", failure="never-registered"),
        ),
        (State.RUNNING, Gone("the machine is gone")),
        (State.STOPPING, Gone("removed", by=None)),
    ],
)
def test_a_machine_that_is_gone_is_gone_whatever_the_row_says(
    state: State, expected: Verdict
) -> None:
    assert judge(a_worker(state=state), MachineStatus.GONE) == expected


def test_a_worker_that_was_told_to_stop_keeps_its_reason_when_gone() -> None:
    worker = a_worker(state=State.STOPPING, stop_reason="over capacity")

    assert judge(worker, MachineStatus.GONE) == Gone("over capacity", by=None)


@pytest.mark.parametrize("status", [MachineStatus.STOPPED, MachineStatus.STOPPING])
def test_a_machine_that_was_stopped_from_outside_is_terminated(status: MachineStatus) -> None:
    """Report B27 (#7680): "stopped" EC2 instances were never terminated."""
    reason = "the machine was stopped from outside"

    assert judge(a_worker(), status) == Stop(reason, by=OUTSIDE)
    requested = a_worker(state=State.REQUESTED)
    assert judge(requested, status) == Stop(reason, "never-registered", by=OUTSIDE)


def test_a_stopped_machine_is_deleted_until_it_is_gone() -> None:
    """Report B27 (#7680)."""
    worker = a_worker(state=State.STOPPING, stopping_since=NOW - MINUTE)

    assert judge(worker, MachineStatus.STOPPED) == StopAgain(stuck=False)


def test_a_worker_that_did_not_register_in_time_is_stopped_and_blamed_on_its_launch_config() -> (
    None
):
    late = a_worker(state=State.REQUESTED, launched=NOW - HOUR, deadline=NOW - MINUTE)

    assert judge(late) == Stop("did not register in time", "never-registered")
    assert judge(replace(late, deadline=NOW)) == Keep()
    assert judge(replace(late, deadline=None)) == Keep()


def test_a_machine_that_its_cloud_never_runs_has_its_own_time_and_reason() -> None:
    """Report B24 (#6492): a slow cloud is no broken image."""
    waiting = a_worker(state=State.REQUESTED, deadline=NOW)

    assert judge(waiting, MachineStatus.PENDING) == Keep()
    assert judge(waiting, MachineStatus.PENDING, now=NOW + MINUTE) == Stop(
        "did not run in its cloud in time", "lost"
    )


def test_the_time_to_register_begins_when_the_machine_runs() -> None:
    """Report B24 (#6492): running after 25 minutes and killed at 30, before it registered."""
    limit = timedelta(minutes=20)
    requested = NOW - timedelta(minutes=25)
    worker = a_worker(
        state=State.REQUESTED,
        created=requested,
        deadline=requested + timedelta(minutes=30),
        registration=limit,
    )

    assert judge(worker, MachineStatus.PENDING) == Keep()
    assert judge(worker) == Launched(deadline=NOW + limit)
    launched = replace(worker, launched=NOW, deadline=NOW + limit)
    assert judge(launched, now=NOW + 6 * MINUTE) == Keep()
    assert judge(launched, now=NOW + 21 * MINUTE) == Stop(
        "did not register in time", "never-registered"
    )


def test_a_machine_first_seen_running_past_its_launch_limit_still_gets_its_time() -> None:
    """Report B24 (#6492): the scan may come late, too."""
    worker = a_worker(state=State.REQUESTED, deadline=NOW - MINUTE)

    assert judge(worker) == Launched(deadline=NOW + worker.registration)


@pytest.mark.parametrize("launched", [None, NOW - HOUR])
def test_what_the_cloud_says_of_its_start_condemns_no_worker_that_registered(
    launched: datetime | None,
) -> None:
    """Report B32 (#6898): "failed" to start, and running and registered all the same."""
    worker = a_worker(registered=NOW - HOUR, first_claim=NOW - HOUR, launched=launched)

    assert judge(worker, MachineStatus.PENDING, busy()) == Keep()


@pytest.mark.parametrize(
    "worker",
    [
        a_worker(registered=NOW - 30 * DAY, created=NOW - 30 * DAY),
        a_worker(registered=NOW - 30 * DAY, first_claim=NOW - 29 * DAY),
        a_worker(registered=NOW - 30 * DAY, quarantine_until=NOW + DAY),
    ],
)
def test_unknown_activity_is_never_inactivity(worker: Worker) -> None:
    """Report B13 (PR#8193): rows read without the queue's fields killed busy workers."""
    assert judge(worker, known=False) == Keep()
    assert judge(worker, activity=busy(last_active=NOW - 9 * DAY), known=False) == Keep()


@given(
    hours=st.integers(0, 2000),
    claimed=st.booleans(),
    status=st.sampled_from([MachineStatus.PENDING, MachineStatus.RUNNING]),
)
def test_no_age_makes_a_zombie_of_a_worker_the_queue_did_not_tell_of(
    hours: int, claimed: bool, status: MachineStatus
) -> None:
    """Report B13 (bug 2006698)."""
    since = NOW - timedelta(hours=hours)
    worker = a_worker(created=since, registered=since, first_claim=since if claimed else None)

    assert judge(worker, status, known=False) == Keep()


def test_an_agent_that_died_is_noticed_by_its_silence() -> None:
    """Report B14 (#6142): the agent died, the machine ran for days."""
    worker = a_worker(registered=NOW - DAY, first_claim=NOW - DAY)
    lasting = 2 * HOUR + Timing().sighting
    silent = busy(first_claim=NOW - DAY, last_active=NOW - lasting - MINUTE)

    assert judge(worker, activity=silent) == Stop("inactive for more than 7200 s")
    assert judge(worker, activity=replace(silent, last_active=NOW - lasting)) == Keep()


def test_a_worker_that_polls_is_not_silent_however_late_the_queue_tells_it() -> None:
    worker = a_worker(registered=NOW - DAY, first_claim=NOW - DAY, queue_inactivity=HOUR / 3)
    told = busy(first_claim=NOW - DAY, last_active=NOW - Timing().sighting)

    assert judge(worker, activity=told) == Keep()


def test_a_worker_quarantined_before_it_ever_called_has_not_claimed() -> None:
    worker = a_worker(registered=NOW - 3 * HOUR)
    aside = Activity(quarantine_until=NOW + HOUR)

    assert judge(worker, activity=aside) == Note(first_claim=None, quarantine_until=NOW + HOUR)
    over = replace(aside, quarantine_until=NOW)
    assert judge(worker, activity=over) == Stop("never claimed work within 7200 s", "never-claimed")


def test_a_worker_that_never_claims_is_stopped_and_blamed_on_its_launch_config() -> None:
    """Report B01 (#6332): machines that boot and never claim."""
    worker = a_worker(registered=NOW - 2 * HOUR - MINUTE)

    assert judge(worker) == Stop("never claimed work within 7200 s", "never-claimed")
    assert judge(replace(worker, registered=NOW - 2 * HOUR)) == Keep()
    assert judge(replace(worker, queue_inactivity=3 * HOUR)) == Keep()


@pytest.mark.parametrize(("hours", "stops"), [(1, False), (25, False), (27, True)])
def test_a_worker_the_queue_forgot_was_silent_for_a_day(hours: int, stops: bool) -> None:
    worker = a_worker(first_claim=NOW - timedelta(hours=hours))

    expected: Verdict = Stop("the queue forgot it: inactive for a day") if stops else Keep()
    assert judge(worker, activity=None) == expected


def test_a_first_claim_is_noted_once() -> None:
    worker = a_worker(registered=NOW - HOUR)
    noted = Note(first_claim=NOW - HOUR, quarantine_until=None)

    assert judge(worker, activity=busy()) == noted
    assert judge(replace(worker, first_claim=NOW - HOUR), activity=busy()) == Keep()


def test_a_first_claim_that_was_noted_stays_as_it_was() -> None:
    worker = a_worker(first_claim=NOW - 2 * HOUR)

    assert judge(worker, activity=busy(first_claim=NOW - HOUR)) == Keep()


def test_a_quarantine_is_noted_when_it_begins_and_when_it_is_lifted() -> None:
    worker = a_worker(first_claim=NOW - HOUR)
    until = NOW + DAY
    quarantined = replace(worker, quarantine_until=until)

    assert judge(worker, activity=busy(quarantine_until=until)) == Note(NOW - HOUR, until)
    assert judge(quarantined, activity=busy(quarantine_until=until)) == Keep()
    assert judge(quarantined, activity=busy()) == Note(NOW - HOUR, None)


def test_a_quarantine_that_ran_out_needs_no_write() -> None:
    worker = a_worker(first_claim=NOW - HOUR, quarantine_until=NOW - MINUTE)

    assert judge(worker, activity=busy()) == Keep()
    assert judge(worker, activity=busy(quarantine_until=NOW - MINUTE)) == Keep()


def test_a_quarantined_worker_is_silent_on_purpose() -> None:
    """Report B22 (#4928): quarantine is for looking into a machine, not for losing it."""
    quarantined = busy(last_active=NOW - DAY, quarantine_until=NOW + DAY)
    worker = a_worker(first_claim=quarantined.first_claim, quarantine_until=NOW + DAY)

    assert judge(worker, activity=quarantined) == Keep()


def test_credentials_that_were_not_renewed_in_time_end_a_worker() -> None:
    worker = a_worker(deadline=NOW - MINUTE, first_claim=NOW - HOUR)

    assert judge(worker, activity=busy()) == Stop("terminateAfter time exceeded")
    assert judge(worker, known=False) == Stop("terminateAfter time exceeded")


@pytest.mark.parametrize(
    ("status", "minutes", "told", "expected"),
    [
        (MachineStatus.RUNNING, 1, 0, StopAgain(stuck=False)),
        (MachineStatus.PENDING, 20, 0, StopAgain(stuck=False)),
        (MachineStatus.STOPPING, 1, 0, Keep()),
        (MachineStatus.STOPPING, 20, 0, Keep()),
        (MachineStatus.STOPPING, 20.5, 0, StopAgain(stuck=True)),
        (MachineStatus.RUNNING, 20.5, 0, StopAgain(stuck=True)),
        (MachineStatus.RUNNING, 35, 0, StopAgain(stuck=True)),
        (MachineStatus.STOPPING, 35, 20.5, Keep()),
        (MachineStatus.STOPPING, 41, 20.5, StopAgain(stuck=True)),
        (MachineStatus.RUNNING, 60, 41, Keep()),
        (MachineStatus.STOPPING, 82, 41, StopAgain(stuck=True)),
    ],
)
def test_a_delete_is_repeated_and_past_its_limit_with_alarm_and_back_off(
    status: MachineStatus, minutes: float, told: float, expected: Verdict
) -> None:
    since = NOW - timedelta(minutes=minutes)
    worker = a_worker(
        state=State.STOPPING, stopping_since=since, modified=since + timedelta(minutes=told)
    )

    assert judge(worker, status) == expected


def test_back_off_alarms_once_at_each_doubling_however_the_scans_fall() -> None:
    worker = a_worker(state=State.STOPPING, stopping_since=NOW, modified=NOW)

    alarms = []
    for second in range(61, 24 * 3600, 61):
        now = NOW + timedelta(seconds=second)
        if judge(worker, MachineStatus.STOPPING, now=now) == StopAgain(stuck=True):
            alarms.append(second // 60)
            worker = replace(worker, modified=now)

    assert alarms == [20, 40, 81, 162, 325, 650, 1301]


class Machine:
    """A silent machine in a cloud that obeys in the end: what one row sees of it, scan by scan."""

    def __init__(self, worker: Worker, status: MachineStatus, *, known: bool) -> None:
        self.worker = worker
        self.status = status
        self.known = known
        self.now = NOW
        self.deletes = 0

    def scan(self) -> None:
        self.now += HOUR
        timing = Timing(scan=HOUR)
        verdict = judge(self.worker, self.status, known=self.known, now=self.now, timing=timing)
        match verdict:
            case Keep():
                pass
            case Note():
                self.worker = replace(self.worker, first_claim=verdict.first_claim)
            case Launched():
                self.worker = replace(self.worker, launched=self.now, deadline=verdict.deadline)
            case Stop():
                self.worker = replace(self.worker, state=State.STOPPING, stopping_since=self.now)
                self.delete()
            case StopAgain():
                self.delete()
            case Gone():
                self.worker = replace(self.worker, state=State.STOPPED)
        if self.status is MachineStatus.STOPPING and self.deletes:
            self.status = MachineStatus.GONE

    def delete(self) -> None:
        """The first delete is lost on the way; the second takes the machine away."""
        self.deletes += 1
        if self.deletes > 1:
            self.status = MachineStatus.STOPPING


@pytest.mark.parametrize(
    ("state", "status", "known", "claimed"),
    list(product(LIVE, MachineStatus, [True, False], [True, False])),
)
def test_every_state_reaches_stopped(
    state: State, status: MachineStatus, known: bool, claimed: bool
) -> None:
    """Report B48 (ec2-fleet-plugin#285, #177): suspended nodes held capacity for ever."""
    worker = a_worker(
        state=state,
        deadline=NOW + 4 * DAY,
        first_claim=NOW if claimed else None,
        stopping_since=NOW if state is State.STOPPING else None,
    )
    machine = Machine(worker, status, known=known)
    scans = 0
    while machine.worker.state is not State.STOPPED:
        machine.scan()
        scans += 1
        assert scans < 24 * 14, f"{machine.worker.state} with {machine.status} is a dead end"


@given(
    state=st.sampled_from(LIVE),
    status=st.sampled_from(MachineStatus),
    known=st.booleans(),
    last=st.none() | st.integers(0, 200).map(lambda hours: NOW - timedelta(hours=hours)),
    deadline=st.none() | st.sampled_from([NOW - HOUR, NOW + HOUR]),
)
def test_a_worker_is_stopped_for_a_reason_and_never_comes_back(
    state: State,
    status: MachineStatus,
    known: bool,
    last: datetime | None,
    deadline: datetime | None,
) -> None:
    worker = a_worker(state=state, deadline=deadline, registered=NOW - HOUR)

    verdict = judge(worker, status, Activity(first_claim=last, last_active=last), known=known)

    if isinstance(verdict, Stop | Gone):
        assert verdict.reason
    if state is State.STOPPING:
        assert not isinstance(verdict, Stop | Note | Launched)
    if status is MachineStatus.GONE:
        assert isinstance(verdict, Gone)


def test_a_spot_machine_that_was_taken_back_is_no_broken_image() -> None:
    told = Surplus(True, SPOT_INTERRUPTION, NOW)
    booting = a_worker(state=State.REQUESTED, surplus=told)

    assert judge(booting, MachineStatus.GONE) == Gone("spot interruption", by="cloud")


@pytest.mark.parametrize("status", [MachineStatus.STOPPING, MachineStatus.STOPPED])
@pytest.mark.parametrize(
    ("reason", "by"), [("over capacity", "worker-manager"), (SPOT_INTERRUPTION, "cloud")]
)
def test_one_that_was_told_to_go_and_is_going_is_not_stopped_from_outside(
    status: MachineStatus, reason: str, by: str
) -> None:
    assert judge(a_worker(surplus=Surplus(True, reason, NOW)), status) == Stop(reason, by=by)


def test_one_that_was_told_to_go_and_went_says_why() -> None:
    told = Surplus(True, "over capacity", NOW)

    assert judge(a_worker(surplus=told), MachineStatus.GONE) == Gone(
        "over capacity", by="worker-manager"
    )


NONE_LEFT = OutOfCapacityError("none left in b", code="ZonalAllocationFailed")


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (MachineStatus.GONE, Gone),
        (MachineStatus.STOPPED, Stop),
        (MachineStatus.PENDING, Stop),
        (MachineStatus.RUNNING, Stop),
    ],
)
def test_a_machine_that_its_cloud_refused_late_ends_with_the_clouds_own_reason(
    status: MachineStatus, verdict: type[Gone | Stop]
) -> None:
    """B33: a launch config is to blame as if the call had been refused at once."""
    found = judge(a_worker(state=State.REQUESTED), status, refusal=NONE_LEFT)

    assert found == verdict("none left in b", "no-capacity", code="ZonalAllocationFailed")


@pytest.mark.parametrize("state", [State.RUNNING, State.STOPPING])
@pytest.mark.parametrize("status", list(MachineStatus))
def test_what_is_said_of_its_creation_changes_nothing_for_one_that_registered_or_goes(
    state: State, status: MachineStatus
) -> None:
    """B32: it outlives all doubt about how it was made."""
    worker = a_worker(state=state, registered=NOW - HOUR, stopping_since=NOW - MINUTE)

    assert judge(worker, status, busy(), refusal=NONE_LEFT) == judge(worker, status, busy())
