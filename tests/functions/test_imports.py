"""What a function loads before its first event: cold starts, and blindness to other clouds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.functions.deployed import ROOT, function_names

if TYPE_CHECKING:
    from tests.functions.deployed import DeployedStage

NOBODY = ("google.cloud", "azure", "grpc", "aiohttp", "aws_xray_sdk", "aws_cdk", "infra", "moto")
NO_API = (
    "worker_manager.reconcile",
    "worker_manager.api.documents",
    "worker_manager.providers.aws.provider",
    "taskcluster",
    "requests",
)
NO_LOOP = ("worker_manager.api", "worker_manager.identity", "worker_manager.queue.embedded")
BUILD = {
    "provision-tick-aws": "loops.loop()",
    "expire": "loops.keeper()",
    "publish": "loops.keeper()",
}
"""What functions without secrets can build without any network."""


@pytest.mark.parametrize("name", function_names())
def test_a_function_loads_only_what_is_its_business(shared: DeployedStage, name: str) -> None:
    folder = name.removesuffix("-aws").replace("-", "_")
    code = (
        f"import json, sys, functions.{folder}.handler\n"
        "from worker_manager.wiring import base\n"
        f"{'from worker_manager.wiring import loops' if name in BUILD else ''}\n"
        f"{BUILD.get(name, '')}\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **shared.environment(name),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "layers/shared/python")]),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    forbidden = (*NOBODY, *(NO_API if name.endswith("-api") else NO_LOOP))
    assert [m for m in loaded if any(_is_within(m, package) for package in forbidden)] == []


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
