"""How machines are, and what their pools' people say is to be done about it by itself.

Verdicts are made by the function ``examine``; here they are told.
Where to read next: ``worker_manager.machines.verdicts``.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.api import paging
from worker_manager.api.everyone import MOST_READ, PATIENCE
from worker_manager.api.found import Place
from worker_manager.api.machine_schemas import (
    HeldPool,
    MachineHealthResponse,
    MachineLimits,
    MachinePolicyRequest,
    MachinePolicyResponse,
    UnwellMachine,
    VerdictPart,
)
from worker_manager.api.mix import HARDWARE_READ
from worker_manager.api.mix_schemas import MixPolicy
from worker_manager.api.registry_answers import told
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.core.ids import POOL_ID
from worker_manager.core.model import WorkerKey
from worker_manager.machines import policy as policies
from worker_manager.machines.memory import to_record, to_watch
from worker_manager.machines.policy import Policy, Thresholds
from worker_manager.machines.verdicts import Condition
from worker_manager.store.machine_table import MachineTable
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.machine_schemas import MachineThresholds
    from worker_manager.core.model import Json
    from worker_manager.machines.verdicts import Verdict
    from worker_manager.registry.registry import Registry

HARDWARE_WRITE = "worker-registry:hardware-write:<taskQueueId>"
AT_ONCE = 1000
"""Pools that are read at once."""

_Step = tuple[Place | None, UnwellMachine | HeldPool | None]
"""How far that is, if one can go on from there, and what is found there."""


def machine_health(call: Call, deps: RegistryDeps) -> MachineHealthResponse:
    """A page of the machines that are not well, each with why, and the facts that it rests on.

    By task queue, group and id.  Each verdict is the first of these that fits: *dead* (not heard
    of for a day, or no reboot helped), *reboot-loop*, *missing* (not heard of for two hours),
    *needs-reformat* (flaky twice in two weeks), *flaky* (its runs fail unlike its siblings'),
    *busy-silent*, *idle-stuck*, *stale-config*.
    """
    wanted, size = call.query.get("verdict"), paging.page_size(call.query)
    after = Place.parse(paging.position(call.query, Place.is_one))
    ends, last = deps.clock() + PATIENCE, after
    found: list[UnwellMachine] = []
    held: list[HeldPool] = []
    token: str | None = None
    steps = _walk(MachineTable(deps.registry.table), call.query.get("taskQueueId"), after)
    for number, (place, one) in enumerate(steps):
        is_wanted = isinstance(one, UnwellMachine) and wanted in (None, one.verdict)
        is_full = len(found) == size and is_wanted
        if is_full or number == MOST_READ or (number and deps.clock() >= ends):
            token = str(last)
            break
        last = place or last
        if isinstance(one, HeldPool):
            held.append(one)
        elif isinstance(one, UnwellMachine) and is_wanted:
            found.append(one)
    page = list(paging.cut(found, paging.size_of, most_bytes=deps.page_bytes))
    if len(page) < len(found):
        token = str(Place.of(_key(page[-1])))
    return MachineHealthResponse(machines=page, held=held, **paging.with_token(token))


def _walk(table: MachineTable, queue_id: str | None, after: Place) -> Iterator[_Step]:
    for name in _queues(table, queue_id, after):
        is_resumed = name == after.queue_id and after.name is not None
        if not is_resumed:
            since = held_since(table, name)
            yield None, HeldPool(task_queue_id=name, since=since) if since else None
        for row in table.verdicts(name, after="#".join(after.name or ()) if is_resumed else ""):
            verdict = to_record(row.body, version=row.version).verdict
            yield Place.of(row.key), _unwell(row.key, verdict)
        yield Place(name), None


def _queues(table: MachineTable, queue_id: str | None, after: Place) -> Iterator[str]:
    """Pools of which something is known, beyond a place, which may be within one."""
    if queue_id is not None:
        if after.queue_id <= queue_id and after != Place(queue_id):
            yield queue_id
        return
    if after.name is not None:
        yield after.queue_id
    last = after.queue_id
    while names := table.watched(after=last, limit=AT_ONCE):
        yield from names
        last = names[-1]


def _unwell(key: WorkerKey, verdict: Verdict) -> UnwellMachine | None:
    if verdict.condition is Condition.HEALTHY:
        return None
    return UnwellMachine(
        task_queue_id=key.pool_id, worker_group=key.group, worker_id=key.worker_id, **_told(verdict)
    )


def _key(machine: UnwellMachine) -> WorkerKey:
    return WorkerKey(machine.task_queue_id, machine.worker_group, machine.worker_id)


def _told(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": str(verdict.condition),
        "since": verdict.since,
        "reason": verdict.reason,
        "facts": dict(verdict.facts),
    }


def verdicts_on(registry: Registry, keys: Sequence[WorkerKey]) -> Mapping[WorkerKey, VerdictPart]:
    """Verdicts on those of these workers that are not well."""
    found = {}
    for row in MachineTable(registry.table).verdicts_named(keys):
        verdict = to_record(row.body, version=row.version).verdict
        if verdict.condition is not Condition.HEALTHY:
            found[row.key] = VerdictPart(**_told(verdict))
    return found


def held_since(table: MachineTable, queue_id: str) -> datetime | None:
    """Since when nothing is done by itself in a pool."""
    known = table.watch(queue_id)
    return to_watch(known[0], version=known[1]).outage_since if known else None


def machine_policy(call: Call, deps: RegistryDeps) -> MachinePolicyResponse:
    """What is done by itself about the machines of a pool, and from when on.

    Of a pool of which nobody said anything, that is nothing.
    """
    name = call.params["taskQueueId"]
    return _answer(name, _policy(deps, name), deps)


def set_machine_policy(call: Call, deps: RegistryDeps) -> MachinePolicyResponse:
    """Say what is done by itself about the machines of a pool; what is left out has its default.

    Whatever it says, nothing is done while too much of a pool is bad at once, and nobody is ever
    released from quarantine.
    """
    body: MachinePolicyRequest = call.body
    name = call.params["taskQueueId"]
    wanted = Policy(
        reboot=body.reboot,
        quarantine=body.quarantine,
        replace=body.replace,
        thresholds=_thresholds(body.thresholds),
        mix=_said(body.mix),
        updated=deps.clock(),
        updated_by=call.client_id or "anonymous",
    )
    stored = policies.to_json(wanted)
    MachineTable(deps.registry.table).put_policy(name, stored)
    logger.info("machine policy", pool=name, policy=stored, client=call.client_id)
    return _answer(name, wanted, deps)


def _said(mix: MixPolicy | None) -> Json | None:
    if mix is None:
        return None
    return mix.model_dump(mode="json", by_alias=True, exclude_none=True)


def _policy(deps: RegistryDeps, queue_id: str) -> Policy:
    known = MachineTable(deps.registry.table).policy(queue_id)
    return policies.from_json(known) if known is not None else Policy()


def _answer(queue_id: str, policy: Policy, deps: RegistryDeps) -> MachinePolicyResponse:
    return MachinePolicyResponse(
        task_queue_id=queue_id,
        reboot=policy.reboot,
        quarantine=policy.quarantine,
        replace=policy.replace,
        thresholds=_limits(policy.thresholds),
        **told(
            mix=MixPolicy.model_validate(policy.mix) if policy.mix is not None else None,
            updated=policy.updated,
            updated_by=policy.updated_by or None,
            held_since=held_since(MachineTable(deps.registry.table), queue_id),
        ),
    )


def _thresholds(given: MachineThresholds | None) -> Thresholds:
    """What is given, beside what is usual."""
    said: dict[str, Any] = {}
    for name, usual in _usual().items():
        is_span = isinstance(usual, timedelta)
        value = getattr(given, f"{name}_seconds" if is_span else name) if given else None
        if value is not None:
            said[name] = timedelta(seconds=value) if is_span else value
    return Thresholds(**said)


def _limits(thresholds: Thresholds) -> MachineLimits:
    said: dict[str, Any] = {}
    for name in _usual():
        value = getattr(thresholds, name)
        if isinstance(value, timedelta):
            said[f"{name}_seconds"] = int(value.total_seconds())
        else:
            said[name] = value
    return MachineLimits(**said)


def _usual() -> dict[str, Any]:
    usual = Thresholds()
    return {one.name: getattr(usual, one.name) for one in fields(Thresholds)}


def _route(name: str, method: str, path: str, scopes: str, **more: Any) -> Route[Any]:
    return Route(
        name=name,
        service="worker-registry",
        method=method,
        path=f"/hardware{path}",
        scopes=scopes,
        stability="experimental",
        **more,
    )


MACHINE_ROUTES: tuple[Route[Any], ...] = (
    _route(
        "machineHealth",
        "GET",
        "/health",
        HARDWARE_READ,
        handler=machine_health,
        query={
            **PAGING,
            "taskQueueId": POOL_ID,
            "verdict": f"^({'|'.join(one for one in Condition if one is not Condition.HEALTHY)})$",
        },
        response=MachineHealthResponse,
    ),
    _route(
        "machinePolicy",
        "GET",
        "/pools/<taskQueueId>/policy",
        HARDWARE_READ,
        handler=machine_policy,
        response=MachinePolicyResponse,
    ),
    _route(
        "setMachinePolicy",
        "PUT",
        "/pools/<taskQueueId>/policy",
        HARDWARE_WRITE,
        handler=set_machine_policy,
        body=MachinePolicyRequest,
        response=MachinePolicyResponse,
    ),
)
