"""The row of a machine that was ordered: before its call, after it, or when a list shows it.

Where to read next: ``sending``, ``announcing``, ``strays``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.events import WORKER_REQUESTED, worker_event
from worker_manager.core.model import State, Worker

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from worker_manager.core.model import Lifecycle, Sighting
    from worker_manager.core.plans import Order, Plan


def new_worker(
    plan: Plan,
    order: Order,
    machine: Sighting,
    lifecycle: Lifecycle,
    created: datetime,
    *,
    launch_limit: timedelta,
) -> Worker:
    """The row of a machine that was ordered, with the event that tells of it.

    ``launch_limit`` is how long the cloud may take until the machine runs, at least.
    """
    worker = Worker(
        key=machine.key,
        provider_id=plan.provider_id,
        location=machine.location,
        state=State.REQUESTED,
        capacity=order.capacity_per_instance,
        created=created,
        modified=created,
        version=1,
        launch_config_id=order.launch_config_id,
        order_id=order.order_id,
        deadline=created + max(launch_limit, lifecycle.registration_limit),
        registration=lifecycle.registration_limit,
        decision=plan.tick,
        reregistration=lifecycle.reregistration,
        queue_inactivity=lifecycle.queue_inactivity,
        identity=machine.identity,
    )
    event = worker_event(
        WORKER_REQUESTED, worker, at=created, reason=f"ordered by plan {plan.tick}"
    )
    return replace(worker, unsent=(event,))
