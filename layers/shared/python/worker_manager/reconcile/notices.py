"""Acting on what a cloud tells of single machines, in seconds instead of at the next scan.

A notice is a reason to look: the cloud is asked whose machines these are and how they are, all in
one call a location, and their rows are settled as the scan would.  Where a pool lost capacity that
it counted on, it is planned anew at once.  Whatever is missed here (a notice that comes before the
row, or never) the next scan finds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker_manager.core.lifecycle import Gone, Stop, settle
from worker_manager.core.messages import look_again
from worker_manager.core.model import State, Surplus
from worker_manager.core.notices import IRREVERSIBLE, fate
from worker_manager.core.surplus import SPOT_INTERRUPTION, is_interrupted
from worker_manager.providers.protocol import Recognises
from worker_manager.queues import Message
from worker_manager.reconcile.settling import Settling, terminate
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from worker_manager.core.model import Location, MachineStatus, Worker, WorkerKey
    from worker_manager.core.notices import Notice
    from worker_manager.reconcile.deps import Deps

ROUNDS = 3
"""How often a row is judged anew because somebody else changed it meanwhile."""

COUNTED_ON = (State.REQUESTED, State.RUNNING)
"""A worker in one of these states is one that its pool does not expect to lose."""


@dataclass(slots=True)
class _Matter:
    """One location's notices on their way into the table.

    ``told`` are the notices of each of our workers and ``fates`` what became of its machine;
    ``unsettled`` is whose row does not say so yet, ``lost`` are rows as they were before.
    """

    told: Mapping[WorkerKey, Collection[MachineStatus | None]]
    fates: Mapping[WorkerKey, MachineStatus]
    settling: Settling
    unsettled: set[WorkerKey]
    lost: list[Worker] = field(default_factory=list)

    def is_lost(self, key: WorkerKey) -> bool:
        """Whether the machine is beyond anybody's reach: nobody needs to delete it any more."""
        return self.fates[key] in IRREVERSIBLE


def heed(notices: Sequence[Notice], deps: Deps) -> frozenset[str]:
    """Act on notices; returns the ids of those that should come again.

    No location's trouble stops the others.
    """
    by_location: defaultdict[Location, list[Notice]] = defaultdict(list)
    for notice in notices:
        by_location[notice.location].append(notice)
    again: set[str] = set()
    for location, some in by_location.items():
        try:
            again |= _heed_location(location, some, deps)
        except Exception:
            logger.exception("notices failed, they come again", place=location, count=len(some))
            again.update(notice.notice_id for notice in some)
    return frozenset(again)


def _heed_location(location: Location, notices: Sequence[Notice], deps: Deps) -> set[str]:
    """The pipeline of one location; returns the ids of notices whose row is not settled."""
    matter = _observe(location, notices, deps)
    for _ in range(ROUNDS):
        if matter.unsettled:
            _judge(matter, deps)
    _act(location, matter, deps)
    matter.settling.tell()
    _plan_anew(matter, min(notice.notice_id for notice in notices), deps)
    names = {key.worker_id for key in matter.unsettled}
    return {notice.notice_id for notice in notices if notice.worker_id in names}


def _observe(location: Location, notices: Sequence[Notice], deps: Deps) -> _Matter:
    """Find out which of these machines are ours: notices come of a whole account's."""
    if not isinstance(deps.provider, Recognises):
        raise TypeError(f"{deps.provider_id}: a cloud that gives no notice")
    told: defaultdict[str, list[MachineStatus | None]] = defaultdict(list)
    for notice in notices:
        told[notice.worker_id].append(notice.status)
    seen = deps.provider.recognise(location, list(told))
    return _Matter(
        told={one.key: told[one.key.worker_id] for one in seen},
        fates={one.key: fate(told[one.key.worker_id], one.status) for one in seen},
        settling=Settling(deps, deps.clock()),
        unsettled={one.key for one in seen},
    )


def _judge(matter: _Matter, deps: Deps) -> None:
    """Settle each row that is not yet; one that somebody changed meanwhile stays unsettled."""
    rows = deps.stores.workers.get_many(matter.unsettled)
    matter.unsettled = {
        worker.key
        for worker in rows.values()
        if worker.provider_id == deps.provider_id
        and worker.state is not State.STOPPED
        and not _is_settled(worker, matter, deps)
    }


def _is_settled(worker: Worker, matter: _Matter, deps: Deps) -> bool:
    """Write what became of one worker; whether its row was still as it had been read."""
    settling = matter.settling
    verdict = settle(
        worker,
        matter.fates[worker.key],
        None,
        activity_known=False,
        now=settling.now,
        timing=deps.timing,
    )
    before = len(settling.changed)
    settling.write(worker, verdict)
    if isinstance(verdict, Stop | Gone):
        is_written = len(settling.changed) > before
        if is_written and worker.state in COUNTED_ON:
            matter.lost.append(worker)
        return is_written
    if None in matter.told[worker.key] and worker.state in COUNTED_ON:
        return is_interrupted(worker) or _warn(worker, matter, deps)
    return True


def _warn(worker: Worker, matter: _Matter, deps: Deps) -> bool:
    """Let a worker hear, when it asks, that its machine is about to be taken; whether written."""
    surplus = Surplus(True, SPOT_INTERRUPTION, matter.settling.now)
    if deps.stores.workers.change(worker, surplus=surplus) is None:
        return False
    logger.info(
        "a machine is about to be taken back",
        pool=worker.key.pool_id,
        worker=worker.key.worker_id,
        group=worker.key.group,
    )
    matter.lost.append(worker)
    return True


def _act(location: Location, matter: _Matter, deps: Deps) -> None:
    """Delete what was only powered off; tell the next list which machines it need not miss."""
    powered_off = [row for row in matter.settling.to_terminate if not matter.is_lost(row.key)]
    terminate(location, powered_off, deps)
    gone = [worker for worker in matter.lost if matter.is_lost(worker.key)]
    if gone:
        deps.stores.places.told_to_stop(deps.provider_id, location, len(gone))


def _plan_anew(matter: _Matter, notice_id: str, deps: Deps) -> None:
    """Have the pools planned that lost what they counted on; a warning counts, its sequel not."""
    pools = {worker.key.pool_id for worker in matter.lost if not is_interrupted(worker)}
    now = matter.settling.now
    messages = [look_again(pool_id, now, notice_id) for pool_id in sorted(pools)]
    if messages:
        deps.senders["provision"].send(
            Message(message.to_json(), group=message.pool_id, dedup=message.dedup)
            for message in messages
        )
