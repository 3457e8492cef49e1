"""What each correction of the emulator changes: an upgrade shows which are still needed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.local.emulator import CORRECTIONS, VERSION

ROOT = Path(__file__).resolve().parents[2]

PROBES = {
    "authorise_batches_by_the_single_action": """
from ministack.core import iam_actions
def probe():
    body = b'{"QueueUrl": "http://127.0.0.1/000000000000/q", "Entries": []}'
    headers = {"x-amz-target": "AmazonSQS.SendMessageBatch",
               "content-type": "application/x-amz-json-1.0"}
    return iam_actions.extract_iam_action("sqs", "POST", "/", headers, body, {})
""",
    "deliver_fifo_groups_side_by_side": """
from ministack.services import lambda_svc
def probe():
    def limit(batch_size):
        mapping = {"BatchSize": batch_size, "ScalingConfig": {"MaximumConcurrency": 5}}
        return lambda_svc._sqs_esm_concurrency(mapping, {}, {}, {"is_fifo": True})
    return [limit(1), limit(10)]
""",
    "do_not_wait_for_silent_handlers": """
from ministack.core import lambda_runtime
def probe():
    return list(lambda_runtime.Worker._drain_stderr_bounded.__defaults__)
""",
    "let_the_simulated_ec2_give_notice": """
import json
from ministack.services import eventbridge
def probe():
    arn = "arn:aws:ec2:eu-west-1:123456789012:instance/i-1"
    entry = {"Source": "aws.ec2", "DetailType": "x", "Detail": "{}", "Resources": [arn]}
    _, _, body = eventbridge._put_events({"Entries": [entry]})
    seen = eventbridge._pattern_event_view({**entry, "Region": "us-east-1"}).envelope()
    return [json.loads(body)["FailedEntryCount"], seen["region"]]
""",
    "look_at_schedules_four_times_a_second": """
from ministack.services import eventbridge
def probe():
    return eventbridge._SCHEDULER_TICK_INTERVAL
""",
}

EXPECTED: dict[str, tuple[Any, Any]] = {
    "authorise_batches_by_the_single_action": ("sqs:SendMessageBatch", "sqs:SendMessage"),
    "deliver_fifo_groups_side_by_side": ([1, 1], [5, 1]),
    "do_not_wait_for_silent_handlers": ([0.05, 0.005, 0.25], [0.002, 0.002, 0.25]),
    "let_the_simulated_ec2_give_notice": ([1, "us-east-1"], [0, "eu-west-1"]),
    "look_at_schedules_four_times_a_second": (10, 0.25),
}


def _in_the_emulators_python(code: str, folder: Path) -> str:
    answer = subprocess.run(
        [str(ROOT / ".emulator" / "bin" / "python"), "-I", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_every_correction_is_shown() -> None:
    assert {correct.__name__ for correct in CORRECTIONS} == set(PROBES) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(PROBES))
def test_a_correction_changes_what_it_says_and_is_still_needed(name: str, tmp_path: Path) -> None:
    load = f"""
import importlib.util, json
spec = importlib.util.spec_from_file_location("ours", {str(ROOT / "infra/local/emulator.py")!r})
ours = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ours)
before = probe()
getattr(ours, {name!r})()
print(json.dumps([before, probe()]))
"""

    before, after = json.loads(_in_the_emulators_python(PROBES[name] + load, tmp_path))

    assert (before, after) == EXPECTED[name]


def test_the_installed_version_is_the_one_the_corrections_fit(tmp_path: Path) -> None:
    code = "import importlib.metadata as m; print(m.version('ministack'))"
    pinned = (ROOT / "infra/local/emulator.requirements.txt").read_text().splitlines()

    assert _in_the_emulators_python(code, tmp_path).strip() == VERSION
    assert f"ministack=={VERSION}" in pinned
