"""What is known of the stock worker-manager: its 27 methods and what each requires."""

from __future__ import annotations

from typing import Any

import taskcluster  # type: ignore[import-untyped]

METHODS: dict[str, dict[str, Any]] = taskcluster.WorkerManager.funcinfo
"""As the stock client was generated from the stock reference."""

_POOL = "<workerPoolId>"
_WORKER = "<workerPoolId>/<workerGroup>/<workerId>"
_TYPE = "<provisionerId>/<workerType>"
_DEFINE = {
    "AllOf": [
        f"worker-manager:manage-worker-pool:{_POOL}",
        "worker-manager:provider:<providerId>",
    ]
}

SCOPES: dict[str, Any] = {
    "ping": None,
    "lbheartbeat": None,
    "version": None,
    "heartbeat": None,
    "listProviders": "worker-manager:list-providers",
    "createWorkerPool": _DEFINE,
    "updateWorkerPool": _DEFINE,
    "deleteWorkerPool": f"worker-manager:manage-worker-pool:{_POOL}",
    "listWorkerPoolLaunchConfigs": f"worker-manager:get-worker-pool:{_POOL}",
    "workerPoolStats": f"worker-manager:get-worker-pool:{_POOL}",
    "workerPool": f"worker-manager:get-worker-pool:{_POOL}",
    "listWorkerPools": "worker-manager:list-worker-pools",
    "listWorkerPoolsStats": "worker-manager:list-worker-pools",
    "reportWorkerError": {
        "AllOf": [
            f"assume:worker-pool:{_POOL}",
            "assume:worker-id:<workerGroup>/<workerId>",
        ]
    },
    "workerPoolErrorStats": f"worker-manager:list-worker-pool-errors:{_POOL}",
    "listWorkerPoolErrors": f"worker-manager:list-worker-pool-errors:{_POOL}",
    "listWorkersForWorkerGroup": f"worker-manager:list-workers:{_POOL}/<workerGroup>",
    "worker": f"worker-manager:get-worker:{_WORKER}",
    "createWorker": f"worker-manager:create-worker:{_WORKER}",
    "updateWorker": f"worker-manager:update-worker:{_WORKER}",
    "removeWorker": f"worker-manager:remove-worker:{_WORKER}",
    "shouldWorkerTerminate": f"worker-manager:should-worker-terminate:{_WORKER}",
    "listWorkersForWorkerPool": f"worker-manager:list-workers:{_POOL}",
    "registerWorker": None,
    "reregisterWorker": f"worker-manager:reregister-worker:{_WORKER}",
    "listWorkers": f"worker-manager:list-workers:{_TYPE}",
    "getWorker": f"worker-manager:get-worker:{_TYPE}/<workerGroup>/<workerId>",
}
"""Method → scope expression; the client was generated without them."""

DIFFERENCES: dict[tuple[str, str], Any] = {
    ("ping", "output"): "v1/ping-answer.json#",
    ("version", "output"): "v1/version-answer.json#",
    ("updateWorker", "input"): "v1/update-worker-request.json#",
}
"""Where ours says something else: more is described, and an update need not be complete."""

EXCHANGES = (
    "worker-pool-created",
    "worker-pool-updated",
    "worker-pool-error",
    "worker-requested",
    "worker-running",
    "worker-stopped",
    "worker-removed",
    "launch-config-created",
    "launch-config-updated",
    "launch-config-archived",
)
