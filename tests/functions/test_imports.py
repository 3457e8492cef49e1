"""What a function loads before its first event: cold starts, and blindness to other clouds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.functions.deployed import ROOT, folder_of, function_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.functions.deployed import DeployedStage

SDKS = {
    "aws": ("worker_manager.providers.aws.provider",),
    "azure": ("azure", "msal", "worker_manager.providers.azure"),
    "google": (
        "google.cloud",
        "google.auth",
        "google.api_core",
        "grpc",
        "proto",
        "worker_manager.providers.google",
    ),
}
"""Of each cloud what no function of another may load, nor any that calls no cloud."""
NOBODY = ("aiohttp", "aws_xray_sdk", "aws_cdk", "infra", "moto")
NO_API = ("worker_manager.reconcile", "worker_manager.api.documents", "taskcluster", "requests")
NO_LOOP = ("worker_manager.api", "worker_manager.identity", "worker_manager.queue.embedded")
BUILD = {
    "provision-tick-aws": "loops.loop()",
    "expire": "loops.keeper()",
    "publish": "loops.keeper()",
}
"""What functions without secrets can build without any network."""
LIKE_AWS = ("-azure", "-google")
"""Their code is that of the function of AWS but for the cloud itself, which is loaded by name."""


SHARED = "boto3, botocore.session, pydantic, pynamodb.models, aws_lambda_powertools"
"""What nearly all functions load: it is loaded once, and the rest in a copy of that process."""
LOADER = f"""
import json, os, sys, traceback
import {SHARED}

for line in sys.stdin:
    case = json.loads(line)
    if not os.fork():
        os.environ.clear()
        os.environ.update(case["environment"])
        found = None
        try:
            exec(case["code"], {{}})
            found = sorted(sys.modules)
        except BaseException:
            traceback.print_exc()
        print(json.dumps(found), flush=True)
        os._exit(0)
    os.wait()
"""


class Loader:
    """A process that tells what is loaded after some code."""

    def __init__(self, process: subprocess.Popen[str], stage: DeployedStage) -> None:
        self._process = process
        self._stage = stage

    def loaded_by(self, name: str, *lines: str) -> list[str]:
        """The modules that are loaded after these lines, with a function's environment."""
        environment = {
            **self._stage.environment(name),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        case = {"environment": environment, "code": "\n".join(lines)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(case), file=self._process.stdin, flush=True)
        found: list[str] | None = json.loads(self._process.stdout.readline())
        assert found is not None, "it failed: see what it wrote"
        return found


@pytest.fixture(scope="module")
def loader(shared: DeployedStage) -> Iterator[Loader]:
    with subprocess.Popen(
        [sys.executable, "-c", LOADER],
        env={
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "layers/shared/python")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Loader(process, shared)


@pytest.mark.parametrize("name", [n for n in function_names() if not n.endswith(LIKE_AWS)])
def test_a_function_loads_only_what_is_its_business(loader: Loader, name: str) -> None:
    loaded = loader.loaded_by(
        name,
        f"import functions.{folder_of(name)}.handler",
        "from worker_manager.wiring import base",
        "from worker_manager.wiring import loops" if name in BUILD else "",
        BUILD.get(name, ""),
    )

    every_sdk = [package for packages in SDKS.values() for package in packages]
    of_others = NO_API if name.endswith("-api") else NO_LOOP
    assert within(loaded, [*NOBODY, *every_sdk, *of_others]) == []


@pytest.mark.parametrize("cloud", SDKS)
def test_functions_of_a_cloud_load_no_other_clouds_sdk(loader: Loader, cloud: str) -> None:
    handlers = [folder_of(name) for name in function_names() if name.endswith(f"-{cloud}")]
    loaded = loader.loaded_by(
        f"scan-pool-{cloud}",
        *(f"import functions.{handler}.handler" for handler in handlers),
        "from worker_manager.providers.registry import load_cloud",
        f"load_cloud({cloud!r})",
    )

    others = [package for name in SDKS if name != cloud for package in SDKS[name]]
    assert within(loaded, [*NOBODY, *NO_LOOP, *others]) == []
    assert within(loaded, [f"worker_manager.providers.{cloud}"])


def within(modules: list[str], packages: list[str]) -> list[str]:
    """Those modules that belong to one of the packages."""
    return [
        module
        for module in modules
        if any(module == package or module.startswith(f"{package}.") for package in packages)
    ]
