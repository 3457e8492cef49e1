"""What parameters mean, wherever they occur, and the headings under which methods stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

URL_PARAMETERS: Mapping[str, str] = {
    "workerPoolId": "The worker pool, as `<provisionerId>/<workerType>`.",
    "taskQueueId": "The task queue, which is the worker pool of the same id.",
    "workerGroup": "Where the worker is: a region, zone or rack.",
    "workerId": "The worker within its group.",
    "provisionerId": "The first half of the worker pool's id.",
    "workerType": "The second half of the worker pool's id.",
    "launchConfigId": "The launch config within its worker pool.",
    "decisionId": "The decision within its worker pool.",
    "taskId": "The task.",
    "runId": "The run of the task, counted from 0.",
}

QUERY_PARAMETERS: Mapping[str, str] = {
    "continuationToken": "Where the last page ended, as its answer said; nothing else is a token.",
    "limit": "How many items a page may have at most; it may have fewer and still not be the last.",
    "includeArchived": "Whether archived launch configs are listed too.",
    "launchConfigId": "Only what belongs to this launch config.",
    "errorId": "Only this error.",
    "state": "Only workers in this state.",
    "workerState": "Only workers in this state; `standalone` are those that only the queue knows.",
    "quarantined": "Only workers that are in quarantine, or only those that are not.",
    "workerPoolId": "Only what belongs to this worker pool; without it, to any.",
    "includeInactive": "Whether what was not seen for long, or never, is listed too.",
    "q": "Only workers whose id begins with this.",
    "workerGroup": "Only workers of this group.",
    "taskQueueId": "Only workers of this task queue.",
    "provisionerId": "Only workers of this provisioner's task queues.",
    "health": "Only workers that fare like this.",
    "providerId": "Only workers of this provider; `none` has those that only a queue knows.",
    "stats": "Whether each comes with its numbers.",
}

_HEADINGS: Mapping[str, str] = {
    "ping": "Monitoring",
    "__lbheartbeat__": "Monitoring",
    "__heartbeat__": "Monitoring",
    "__version__": "Monitoring",
    "worker-pool": "Worker Pools",
    "worker": "Workers",
    "provisioners": "Workers",
    "observations": "Workers",
    "task": "Tasks",
    "claim-work": "Tasks",
    "pending": "Task Queues",
}


def heading(path: str) -> str:
    """Under what a method stands, by the first word of its path."""
    word = path.split("/")[1]
    return _HEADINGS.get(word, word.replace("-", " ").title())


def spoken(name: str) -> str:
    """An event's or exchange's name as words."""
    return name.replace("-", " ").capitalize()


def camel(name: str) -> str:
    """An event's or exchange's name as a method of a client."""
    first, *others = name.split("-")
    return first + "".join(word.capitalize() for word in others)
