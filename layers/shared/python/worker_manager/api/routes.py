"""The routes of the worker-manager's API, by the function that answers them.

The gateway sends ``/workers``, ``/worker`` and ``/worker-pool-errors`` to the function for
machines, ``/api/queue`` to the queue's, and everything else to the one for operators.
"""

from __future__ import annotations

from worker_manager.api import (
    audit,
    decisions,
    error_stats,
    explanations,
    launch_configs,
    ping,
    pool_errors,
    providers,
    queue_workers,
    references,
    registration,
    renewal,
    secrets,
    static_workers,
    stats,
    steering,
    worker_pools,
    workers,
)

POOLS = (
    *ping.ROUTES,
    *providers.ROUTES,
    *launch_configs.ROUTES,
    *steering.ROUTES,
    *decisions.ROUTES,
    *explanations.ROUTES,
    *audit.ROUTES,
    *stats.ROUTES,
    *queue_workers.ROUTES,
    *worker_pools.ROUTES,
    *secrets.ROUTES,
    *references.ROUTES,
)
"""For operators: definitions of pools, and documents."""

WORKERS = (
    *registration.ROUTES,
    *renewal.ROUTES,
    *workers.ROUTES,
    *static_workers.ROUTES,
    *error_stats.ROUTES,
    *pool_errors.ROUTES,
)
"""For machines, and whoever looks after them."""
