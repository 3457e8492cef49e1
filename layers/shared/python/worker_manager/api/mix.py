"""The recommended mix of pools for machines that stay.

Of those pools whose policy has a part ``mix``; nothing here changes anything.
Where to read next: ``mix.recommender``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api import mix_schemas as schemas
from worker_manager.api.registry_answers import told
from worker_manager.api.routing import Call, Route
from worker_manager.mix.entities import Pool
from worker_manager.mix.gathering import machine_of, service_of, slots_of
from worker_manager.mix.load import SLOT, WEEK, Loads
from worker_manager.mix.recommender import recommend
from worker_manager.store.load_table import LoadTable
from worker_manager.store.machine_table import MachineTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.mix.entities import Line, Machine, Move, Waits, Wishes

HARDWARE_READ = "worker-registry:hardware-read"
MOST_WEEKS = 4


def recommended_mix(call: Call, deps: RegistryDeps) -> schemas.MixResponse:
    """How machines that stay are best shared out among pools, by the load of the last weeks.

    Of pools whose policy has a part ``mix``.  What tasks would have waited is replayed from
    samples of that time, for these and for other numbers of machines.  Machines to move are named,
    the idlest first: in a week a twentieth of all at most, and only if that saves a tenth of the
    waiting.  Else nothing is proposed, and said why.  Nothing is ever moved by this.
    """
    weeks = int(call.query.get("weeks", MOST_WEEKS))
    now = deps.clock()
    pools: list[Pool] = []
    machines: list[Machine] = []
    loads = Loads(LoadTable(deps.registry.table))
    for queue_id, wishes in _taking_part(deps):
        workers = list(deps.registry.all_workers(queue_id))
        found = [one for worker in workers if (one := machine_of(worker, wishes, now)) is not None]
        machines += found
        pools.append(
            Pool(
                queue_id=queue_id,
                wishes=wishes,
                samples=loads.of(queue_id, since=now - weeks * WEEK, until=now + SLOT),
                service=service_of(workers),
                slots=slots_of(workers),
            )
        )
    found_mix = recommend(pools, machines, now=now)
    return schemas.MixResponse(
        at=now,
        weeks=weeks,
        most=found_mix.most,
        reason=found_mix.reason,
        pools=[_line(line) for line in found_mix.lines],
        moves=[_move(move) for move in found_mix.moves],
    )


def _taking_part(deps: RegistryDeps) -> Iterator[tuple[str, Wishes]]:
    for queue_id, policy in MachineTable(deps.registry.table).policies():
        if policy.get("mix") is not None:
            yield queue_id, schemas.MixPolicy.model_validate(policy["mix"]).wishes()


def _line(line: Line) -> schemas.MixLine:
    return schemas.MixLine(
        task_queue_id=line.queue_id,
        machines=line.now,
        unusable=line.unusable,
        proposed=line.proposed,
        change=line.proposed - line.now,
        reason=line.reason,
        **told(
            demand=None if line.demand is None else round(line.demand, 1),
            task_seconds=None if line.service is None else line.service.total_seconds(),
            wait_seconds=_worst(line.before),
            proposed_wait_seconds=_worst(line.after),
            weekly_wait_seconds=_weekly(line.before),
            proposed_weekly_wait_seconds=_weekly(line.after),
        ),
    )


def _worst(waits: Waits | None) -> float | None:
    if waits is None or waits.worst is None:
        return None
    return round(waits.worst.total_seconds(), 1)


def _weekly(waits: Waits | None) -> float | None:
    return None if waits is None else round(waits.weekly.total_seconds(), 1)


def _move(move: Move) -> schemas.MixMove:
    key = move.machine.key
    return schemas.MixMove(
        task_queue_id=key.pool_id,
        worker_group=key.group,
        worker_id=key.worker_id,
        machine_class=move.machine.machine_class,
        to_task_queue_id=move.target,
        reason=move.reason,
    )


MIX_ROUTES: tuple[Route[Any], ...] = (
    Route(
        name="recommendedMix",
        service="worker-registry",
        method="GET",
        path="/hardware/mix",
        handler=recommended_mix,
        scopes=HARDWARE_READ,
        query={"weeks": rf"^[1-{MOST_WEEKS}]$"},
        response=schemas.MixResponse,
        stability="experimental",
    ),
)
