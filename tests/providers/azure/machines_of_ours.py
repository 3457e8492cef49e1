"""Launching on a stage and taking rows through it, as the callers of the provider do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.providers.orders import worker_of
from worker_manager.providers.protocol import Made

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage
    from worker_manager.core.model import Worker


def launched(stage: AzureStage, **given: Any) -> list[Worker]:
    """The rows of an order's machines."""
    return [worker_of(one) for one in stage.provider.launch(stage.order(**given)).machines]


def made(stage: AzureStage, workers: list[Worker]) -> list[Worker]:
    """The rows once their machines are made."""
    steps = stage.provider.follow(stage.location, workers)
    found = []
    for worker in workers:
        step = steps[worker.key]
        assert isinstance(step, Made), step
        found.append(replace(worker, identity=step.identity))
    return found
