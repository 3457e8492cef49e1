"""All workers of all task queues and pools in one order, as the registry and our rows know them.

Task queues come by id, workers by group and id within them; what both sides know of one is joined
on its full name.  Going on from a place neither skips nor repeats a worker that was there all
along, and one walk reads only so much: who asked goes on from where it ended.
Where to read next: ``found`` (who is wanted), ``search`` and ``bulk``, which show and change them.
"""

from __future__ import annotations

from datetime import timedelta
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from worker_manager.api.found import Found, Place
from worker_manager.api.refusals import not_found
from worker_manager.core.model import WorkerKey
from worker_manager.registry.windows import is_worker_listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.found import Name, Wanted
    from worker_manager.api.routing import Call
    from worker_manager.core.model import Worker
    from worker_manager.registry.entities import RegistryWorker, WorkerType

MOST_READ = 5000
"""Workers and queues that one walk looks at, however few of them are wanted."""
PATIENCE = timedelta(seconds=10)
"""After which a walk ends, though it could go on: the gateway waits for 29 s."""
AT_ONCE = 1000
"""Rows of one request to a table, where many are read for few."""
BATCH = 100
"""Workers that are looked up by name at once."""

_Step = tuple[Place, Found | None]


def take(
    call: Call, deps: RegistryDeps, wanted: Wanted, *, after: Place, size: int
) -> tuple[list[Found], Place | None]:
    """At most so many wanted workers beyond a place, and where to go on, if it was not the end.

    Only of queues whose workers the caller may list; a queue that is asked for by name must be
    one, or it is a 403.
    """
    if wanted.task_queue_id is not None:
        call.require(_scope(wanted.task_queue_id))
    ends = deps.clock() + PATIENCE
    now, found, last = deps.clock(), list[Found](), after
    # To know that a page is full and not the last takes one worker more, to join it another.
    at_once = size + 2 if wanted.is_everything else AT_ONCE
    for number, (place, one) in enumerate(_walk(call, deps, wanted, after, at_once)):
        is_full = len(found) == size and one is not None
        if is_full or number == MOST_READ or (number and deps.clock() >= ends):
            return found, last
        last = place
        if one is not None and wanted.has(one, now):
            found.append(one)
    return found, None


def known(deps: RegistryDeps, key: WorkerKey) -> Found:
    """One worker, shown in lists or not; a 404 if nobody knows it."""
    row = deps.stores.workers.get(key)
    if row is not None and deps.stores.workers.is_forgotten(row, deps.clock()):
        row = None
    seen = deps.registry.worker(key)
    if seen is None and row is None:
        raise not_found(f"Worker {key.group}/{key.worker_id} of {key.pool_id} is not known")
    return Found(key, seen, row)


def _walk(
    call: Call, deps: RegistryDeps, wanted: Wanted, after: Place, at_once: int
) -> Iterator[_Step]:
    held = [key for key in _held(deps) if wanted.has_queue(key.pool_id)]
    if wanted.quarantined:
        yield from _by_name(call, deps, [key for key in held if after.precedes(key)])
        return
    for queue_id, known_type in _queues(deps, wanted, held, after):
        name = after.name if queue_id == after.queue_id else None
        if call.satisfies(_scope(queue_id)):
            is_hardware = known_type is not None and known_type.is_hardware
            start = max(name or ("", ""), (wanted.worker_group or "", ""))
            for found in _of_queue(deps, queue_id, start, at_once, is_hardware=is_hardware):
                group = found.key.group
                if wanted.worker_group is not None and group > wanted.worker_group:
                    break
                is_there = found.seen is not None or found.row is not None
                yield Place.of(found.key), found if is_there else None
        yield Place(queue_id), None


def _held(deps: RegistryDeps) -> list[WorkerKey]:
    """All workers in quarantine, in order."""
    now, after = deps.clock(), ""
    keys: list[WorkerKey] = []
    while True:
        lines, following = deps.quarantines.listed(after=after, limit=AT_ONCE)
        keys += (line.key for line in lines if line.until > now)
        if following is None:
            return sorted(keys)
        after = following


def _by_name(call: Call, deps: RegistryDeps, keys: Sequence[WorkerKey]) -> Iterator[_Step]:
    """These workers, as far as the caller may list them."""
    may_list = {name: call.satisfies(_scope(name)) for name in {key.pool_id for key in keys}}
    listed = [key for key in keys if may_list[key.pool_id]]
    now = deps.clock()
    for start in range(0, len(listed), BATCH):
        some = listed[start : start + BATCH]
        seen, rows = deps.registry.workers_named(some), deps.stores.workers.get_many(some)
        for key in some:
            row = rows.get(key)
            if row is not None and deps.stores.workers.is_forgotten(row, now):
                row = None
            yield Place.of(key), Found(key, seen.get(key), row)


def _queues(
    deps: RegistryDeps, wanted: Wanted, held: Iterable[WorkerKey], after: Place
) -> Iterator[tuple[str, WorkerType | None]]:
    """Queues to look into, in order: those seen or declared, pools, and those of the ``held``."""
    if wanted.task_queue_id is not None:
        is_over = after.queue_id > wanted.task_queue_id
        if not is_over and after != Place(wanted.task_queue_id):
            yield wanted.task_queue_id, deps.registry.worker_type(wanted.task_queue_id)
        return
    if after.name is not None and wanted.has_queue(after.queue_id):
        yield after.queue_id, deps.registry.worker_type(after.queue_id)
    prefix = f"{wanted.provisioner_id}/" if wanted.provisioner_id else ""
    beyond = max(after.queue_id, prefix)
    sources = (
        ((one.queue_id, one) for one in _types(deps, wanted.provisioner_id, beyond)),
        ((pool_id, None) for pool_id in deps.stores.pools.ids(after=beyond or None)),
        ((key.pool_id, None) for key in held if key.pool_id > beyond),
    )
    for queue_id, same in groupby(merge(*sources, key=itemgetter(0)), key=itemgetter(0)):
        if not queue_id.startswith(prefix):
            return
        yield queue_id, next((one for _, one in same if one is not None), None)


def _types(deps: RegistryDeps, provisioner_id: str | None, after: str) -> Iterator[WorkerType]:
    while types := deps.registry.worker_types(
        provisioner_id=provisioner_id, after=after, limit=AT_ONCE
    ):
        yield from types
        after = types[-1].queue_id


def _of_queue(
    deps: RegistryDeps, queue_id: str, after: Name, at_once: int, *, is_hardware: bool
) -> Iterator[Found]:
    """Every worker of a queue beyond a name, in order; one no longer shown without any facts."""
    now, rules = deps.clock(), deps.registry.windows
    begin = "#".join(after) if any(after) else ""
    rows = (
        ((row.key.group, row.key.worker_id), row, None)
        for row in deps.stores.workers.beyond(queue_id, after=begin or None, at_once=at_once)
    )
    seen = (
        ((one.key.group, one.key.worker_id), None, one)
        for one in deps.registry.all_workers(queue_id, after=begin, at_once=at_once)
    )
    both = merge(rows, seen, key=itemgetter(0))
    for name, same in groupby(both, key=itemgetter(0)):
        row: Worker | None = None
        worker: RegistryWorker | None = None
        for _, ours, theirs in same:
            row, worker = ours or row, theirs or worker
        if row is not None and deps.stores.workers.is_forgotten(row, now):
            row = None
        if row is None and worker is not None:
            is_listed = is_worker_listed(worker, now, rules, is_hardware=is_hardware)
            worker = worker if is_listed else None
        yield Found(WorkerKey(queue_id, *name), worker, row)


def _scope(queue_id: str) -> str:
    return f"queue:list-workers:{queue_id}"
