"""Bring one worker pool towards its desired capacity."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import ProviderNotReadyError
from worker_manager.core.messages import ProvisionPool
from worker_manager.metrics import meter
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.provision import provision
from worker_manager.settings import MissingSettingError
from worker_manager.telemetry import logger
from worker_manager.wiring import loops

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], context: LambdaContext) -> None:
    """Take records of ``provision.fifo``.

    A pool that fails is logged and its message acknowledged: the next tick begins by finishing
    what this one left, while a redelivery would only hold the pool's later ticks back.  A
    setting that is missing fails the call: no tick repairs that.
    """
    for record in event["Records"]:
        try:
            message = ProvisionPool.from_json(json.loads(record["body"]))
            deps, started = loops.loop(), monotonic()
            report = provision(message, deps, Deadline.of(context))
            meter.provisioned(
                deps.provider_id,
                report.pool_id,
                facts=report.facts,
                ordered=report.ordered,
                seconds=monotonic() - started,
            )
        except (MissingSettingError, ProviderNotReadyError):
            raise
        except Exception:
            meter.crashed()
            logger.exception("a pool failed, its next tick repairs", body=record["body"])
