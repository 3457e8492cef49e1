"""Starts the embedded AWS emulator, corrected where our template needs what AWS does.

Run by the emulator's own Python, which has ministack and nothing of ours:
``.emulator/bin/python -I infra/local/emulator.py``.  The corrections reach into one exact version;
a test shows for each what it changes, so that an upgrade shows which ones are still needed.
Why this emulator: ``infra/decisions/0001-embedded-emulator.md``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
from typing import Any

VERSION = "1.5.33"
"""The one version of ministack that the corrections fit."""


def _module(name: str) -> Any:
    return importlib.import_module(f"ministack.{name}")


def authorise_batches_by_the_single_action() -> None:
    """AWS allows SendMessageBatch to whoever may SendMessage; there is no action for batches."""
    iam_actions = _module("core.iam_actions")
    extract = iam_actions.extract_iam_action

    def single_action(*arguments: Any, **named: Any) -> Any:
        action = extract(*arguments, **named)
        return re.sub(r"^(sqs:\w+)Batch$", r"\1", action) if action else action

    iam_actions.extract_iam_action = single_action


def deliver_fifo_groups_side_by_side() -> None:
    """Up to the mapping's maximum concurrency at once, as on AWS, not one for the whole queue.

    Right only for mappings of batch size 1 (ours): a batch never spans two groups, and a group
    with a message in flight delivers no other.
    """
    lambda_svc = _module("services.lambda_svc")
    concurrency = lambda_svc._sqs_esm_concurrency

    def as_for_standard_queues(esm: Any, record: Any, config: Any, queue: Any = None) -> Any:
        serial = esm.get("BatchSize") != 1
        return concurrency(esm, record, config, queue if serial else None)

    lambda_svc._sqs_esm_concurrency = as_for_standard_queues


def do_not_wait_for_silent_handlers() -> None:
    """A handler that logs nothing answers at once, not after 50 ms of listening for a line."""
    worker = _module("core.lambda_runtime").Worker
    worker._drain_stderr_bounded.__defaults__ = (0.002, 0.002, 0.250)


def look_at_schedules_four_times_a_second() -> None:
    """Schedules fire within 0.25 s of their time, not within ten."""
    _module("services.eventbridge")._SCHEDULER_TICK_INTERVAL = 0.25


def let_the_simulated_ec2_give_notice() -> None:
    """Anybody may put events as ``aws.ec2``; their region is that of the instance they are about.

    AWS lets only its services do so, each in its region, and ours forwards them to one.
    """
    eventbridge = _module("services.eventbridge")
    view = eventbridge._pattern_event_view

    def in_the_instances_region(event: Any) -> Any:
        if event.get("Source") == "aws.ec2":
            return view({**event, "Region": event["Resources"][0].split(":")[3]})
        return view(event)

    eventbridge._pattern_event_view = in_the_instances_region
    eventbridge._put_events.__defaults__ = (True,)


CORRECTIONS = (
    authorise_batches_by_the_single_action,
    deliver_fifo_groups_side_by_side,
    do_not_wait_for_silent_handlers,
    let_the_simulated_ec2_give_notice,
    look_at_schedules_four_times_a_second,
)


def main() -> None:
    """Correct and serve; settings come from the environment, as ministack reads them."""
    found = importlib.metadata.version("ministack")
    if found != VERSION:
        sys.exit(f"ministack {found} is installed, the corrections fit {VERSION}: run make setup")
    for correct in CORRECTIONS:
        correct()
    _module("app").main()


if __name__ == "__main__":
    main()
