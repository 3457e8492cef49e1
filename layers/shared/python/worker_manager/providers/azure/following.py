"""Seeing launches through: what became of machines whose creation was accepted.

A worker that registered outlives any doubt about its creation, and one that runs may still
register, whatever Azure says of its provisioning (B32).  A deployment's record is deleted once its
outcome is known; until that is done the worker is not done either, for its record takes up room.
Where to read next: ``reading`` (how it is asked), ``deployments`` (what records say).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import CloudError, CloudUnavailableError, ThrottledError
from worker_manager.core.model import MachineStatus, State
from worker_manager.providers.answers import failures, learned
from worker_manager.providers.azure import deployments, reading
from worker_manager.providers.azure.ending import delete_record
from worker_manager.providers.azure.errors import cloud_errors
from worker_manager.providers.azure.machines import identity, run_time, status, why_failed
from worker_manager.providers.azure.tags import is_tolerated, tags_of
from worker_manager.providers.protocol import Failed, Made, Pending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.model import Json, Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.azure.reading import Found
    from worker_manager.providers.protocol import Step
    from worker_manager.providers.visit import Visit

FOLLOW_AFTER = timedelta(seconds=5)
"""Between two looks at a creation; each is a list or two, however many machines are looked at."""

OS_TROUBLE = "OSProvisioning"
"""So begin the codes of machines that run, but whose system did not report in time."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What became of a creation; whether there may be a record of it that nobody needs now."""

    step: Step
    is_recorded: bool = False


def follow(arm: Arm, visit: Visit, workers: Sequence[Worker]) -> Mapping[WorkerKey, Step]:
    """How far the creation of each is; those of which nothing could be learned are left out.

    Raises the first ``CloudError`` if that is all of them.
    """
    over = {worker.key: Made(worker.identity) for worker in workers if _is_over(worker)}
    followed = [worker for worker in workers if worker.key not in over]
    unsettled = [worker for worker in followed if not reading.is_settled(worker)]
    records = reading.records(arm, visit, unsettled)
    asked = [worker for worker in followed if _wants_machine(records.get(worker.key))]
    machines = reading.machines(arm, visit, asked)

    def judge(worker: Worker) -> _Verdict:
        record = reading.sure(records.get(worker.key))
        vm = reading.sure(machines.get(worker.key))
        if reading.is_settled(worker):
            return _of_machine(worker, vm)
        return _of_deployment(arm, visit, worker, record, vm)

    verdicts = learned((worker.key for worker in followed), visit.each(judge, followed))
    useless = [worker for worker in followed if _is_useless(worker, verdicts.get(worker.key))]
    steps = {key: verdict.step for key, verdict in verdicts.items()}
    return {**over, **steps, **_tidied(arm, visit, useless)}


def _is_over(worker: Worker) -> bool:
    """Whether its creation was seen through before, and only its record is kept."""
    return "deployment" in worker.identity and reading.is_settled(worker)


def _wants_machine(record: Found) -> bool:
    """Whether the machine tells more than the record, which is missing for most."""
    if isinstance(record, CloudError):
        return False
    return record is None or deployments.has_ended(record)


def _of_machine(worker: Worker, vm: Json | None) -> _Verdict:
    """What became of a machine that was asked for in one request."""
    if worker.state is not State.REQUESTED:
        return _Verdict(Made(_known(worker, vm)))
    if vm is None:
        return _Verdict(Failed(_vanished("it was being made, and is gone"), is_gone=True))
    seen = run_time(vm["properties"].get("instanceView") or {})
    error = why_failed(vm, seen)
    if error is not None:
        return _Verdict(Failed(error))
    match status(vm, seen):
        case MachineStatus.PENDING:
            return _Verdict(Pending(FOLLOW_AFTER))
        case MachineStatus.STOPPING:
            return _Verdict(Failed(_vanished("it was being made, and is being deleted")))
        case _:
            return _Verdict(Made(_known(worker, vm)))


def _of_deployment(
    arm: Arm, visit: Visit, worker: Worker, record: Json | None, vm: Json | None
) -> _Verdict:
    """What became of a machine that a template was to make."""
    if record is not None and not deployments.has_ended(record):
        return _Verdict(Pending(FOLLOW_AFTER))
    is_recorded = record is not None
    if worker.state is not State.REQUESTED:
        return _Verdict(Made(_known(worker, vm)), is_recorded=is_recorded)
    if record is None or deployments.state_of(record) == deployments.SUCCEEDED:
        if vm is not None:
            return _Verdict(Made(_known(worker, vm)), is_recorded=is_recorded)
        return _Verdict(Failed(_no_machine(worker, record), is_gone=True), is_recorded=is_recorded)
    with cloud_errors():
        error = deployments.why_failed(
            arm,
            record,
            resource_group=worker.identity["resourceGroup"],
            timeout=visit.timeout,
        )
    if vm is not None and _may_register(vm, error):
        return _Verdict(Made(_known(worker, vm)), is_recorded=is_recorded)
    return _Verdict(Failed(error, is_gone=vm is None), is_recorded=is_recorded)


def _may_register(vm: Json, error: CloudError) -> bool:
    """Whether the machine of a failed deployment works, as far as anybody can tell."""
    seen = run_time(vm["properties"].get("instanceView") or {})
    is_excused = error.code.startswith(OS_TROUBLE) or is_tolerated(error.code, tags_of(vm))
    return seen.is_on and is_excused


def _no_machine(worker: Worker, record: Json | None) -> CloudError:
    """Why there is no machine where nothing is said to have failed."""
    if record is None:
        return _vanished("the record of the deployment is gone, and there is no machine")
    return deployments.made_none(worker.key.worker_id, record)


def _vanished(what: str) -> CloudError:
    return CloudUnavailableError(f"MachineVanished: {what}", code="MachineVanished")


def _known(worker: Worker, vm: Json | None) -> dict[str, Any]:
    """What is known of a worker from now on; its deployment, only if the record is kept."""
    group = worker.identity["resourceGroup"]
    kept: dict[str, Any] = {}
    if worker.identity.get("keepDeployment"):
        kept = {name: worker.identity[name] for name in ("deployment", "keepDeployment")}
        kept["isSeenThrough"] = True
    if vm is None:
        return {**kept, "resourceGroup": group}
    return {**kept, **identity(group, vm)}


def _is_useless(worker: Worker, verdict: _Verdict | None) -> bool:
    """Whether a worker's record has told all, and nobody wants it kept."""
    is_recorded = verdict is not None and verdict.is_recorded
    return is_recorded and not worker.identity.get("keepDeployment")


def _tidied(arm: Arm, visit: Visit, workers: Sequence[Worker]) -> dict[WorkerKey, Step]:
    """Delete the records of these workers; those whose record stays are pending on that account."""

    def tidy(worker: Worker) -> None:
        delete_record(arm, visit, worker.identity["resourceGroup"], worker.identity["deployment"])

    answers = visit.each(tidy, workers)
    return {
        key: Pending(error.retry_after if isinstance(error, ThrottledError) else FOLLOW_AFTER)
        for key, error in failures((worker.key for worker in workers), answers).items()
    }
