"""Settle one pool's workers in one location against a complete list."""

from __future__ import annotations

import json
from time import monotonic
from typing import Any

from worker_manager.core.errors import ProviderNotReadyError
from worker_manager.metrics import meter
from worker_manager.reconcile.scan import read, scan
from worker_manager.settings import MissingSettingError
from worker_manager.telemetry import logger
from worker_manager.wiring import loops


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], _context: object) -> None:
    """Take records of ``scan.fifo``.

    A pool that fails is logged and its message acknowledged: the next list says all that this one
    said, while a redelivery would only hold it back.  A setting that is missing fails the call:
    no list repairs that.
    """
    for record in event["Records"]:
        try:
            deps, started = loops.loop(), monotonic()
            message = read(json.loads(record["body"]), deps)
            if message is not None:
                report = scan(message, deps)
                meter.scanned(deps.provider_id, report, seconds=monotonic() - started)
        except (MissingSettingError, ProviderNotReadyError):
            raise
        except Exception:
            meter.crashed()
            logger.exception("a scan failed, the next list repairs", body=record["body"][:500])
