"""The stock tool that keeps pools as they are written down finds what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.stage import ACCESS_TOKEN, CLIENT_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.journeys.world import World

pytestmark = pytest.mark.journey

HERE = Path(__file__).parent
POOLS = HERE.parent / "data" / "worker-pools.json"
TOOL = Path(sys.executable).with_name("tc-admin")

NO_DIFFERENCE, A_DIFFERENCE = 0, 2
"""Exit codes of ``tc-admin diff``."""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    copy = tmp_path / "worker-pools.json"
    copy.write_text(POOLS.read_text())
    return copy


@pytest.fixture
def tc_admin(world: World, written: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(TOOL), *arguments],
            cwd=HERE / "tcadmin",
            env={
                "PATH": os.environ["PATH"],
                "WORKER_POOLS": str(written),
                "TASKCLUSTER_ROOT_URL": world.stage.root_url,
                "TASKCLUSTER_CLIENT_ID": CLIENT_ID,
                "TASKCLUSTER_ACCESS_TOKEN": ACCESS_TOKEN,
                "TERM": "dumb",
                "NO_PROXY": "*",
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def differences(tc_admin: Any) -> str:
    """What ``diff`` reports, empty if nothing."""
    finished = tc_admin("diff", "--ids-only")
    assert finished.returncode in (NO_DIFFERENCE, A_DIFFERENCE), finished.stderr
    told: str = finished.stdout.strip()
    assert bool(told) == (finished.returncode == A_DIFFERENCE)
    return told


def apply(tc_admin: Any) -> str:
    finished = tc_admin("apply")
    assert finished.returncode == 0, finished.stderr
    told: str = finished.stdout
    return told


def test_what_it_applied_is_no_difference_and_what_was_changed_is(
    world: World, written: Path, tc_admin: Any
) -> None:
    pools = json.loads(written.read_text())
    ids = {pool["workerPoolId"] for pool in pools}
    assert apply(tc_admin).count("Creating") == len(pools)
    assert differences(tc_admin) == ""
    listed = {pool["workerPoolId"] for pool in world.manager.listWorkerPools()["workerPools"]}
    assert ids <= listed

    *pools, gone = pools
    changed = pools[0]
    changed["config"]["maxCapacity"] += 1
    written.write_text(json.dumps(pools))
    told = differences(tc_admin)
    assert f"! WorkerPool={changed['workerPoolId']} (changed: config)" in told
    assert f"- WorkerPool={gone['workerPoolId']}" in told
    told = apply(tc_admin)
    assert (told.count("Updating"), told.count("Deleting")) == (1, 1)
    assert differences(tc_admin) == ""
    applied = world.manager.workerPool(changed["workerPoolId"])
    assert applied["config"]["maxCapacity"] == changed["config"]["maxCapacity"]

    written.write_text(json.dumps([*pools, gone]))
    apply(tc_admin)
    assert differences(tc_admin) == ""
    assert world.manager.workerPool(gone["workerPoolId"])["providerId"] == "aws"
