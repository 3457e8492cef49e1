"""Building what does actions, once per container.

Where to read next: ``actions`` and ``backends``, which it is made of; ``reconcile.act``.
"""

from __future__ import annotations

from functools import cache

from worker_manager import settings as settings_module
from worker_manager.queues import SqsSender
from worker_manager.reconcile.act import ActDeps
from worker_manager.store.audit import AuditStore
from worker_manager.wiring.actions import caller_of, new_lease_id, runs_of
from worker_manager.wiring.backends import backend_of, quarantines_of, registry_of
from worker_manager.wiring.base import SENDERS, Base, later, now


@cache
def acting() -> ActDeps:
    """For the function that does what no agent does."""
    base = Base(settings_module.load())
    registry = registry_of(base)
    sqs = base.client("sqs")
    return ActDeps(
        runs=runs_of(base, registry),
        stores=base.stores,
        audit=AuditStore(base.tables, kept=base.timing.audit_kept),
        outbox=base.outbox,
        quarantines=quarantines_of(base, registry),
        backend=backend_of(base, registry),
        # Most runs call nobody.
        caller=later(lambda: caller_of(base)),
        senders={
            provider_id: SqsSender(sqs, urls["advance"])
            for provider_id, urls in base.settings.provider_queues.items()
        },
        act=SqsSender(sqs, base.settings.required(SENDERS["act"])),
        clock=now,
        new_lease_id=new_lease_id,
    )
