"""The pruned SDK of Compute Engine: less of it, and the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.cloud import compute_v1

from infra.prune_compute import SERVICES, prune_compute

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(str(compute_v1.__file__)).parent
PROVIDER = ROOT / "layers" / "shared" / "python" / "worker_manager" / "providers" / "google"


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages that has nothing but a pruned copy of the SDK."""
    packages = tmp_path_factory.mktemp("packages")

    def others(folder: str, names: list[str]) -> list[str]:
        is_services = Path(folder).name == "services"
        # One of the dropped is copied, to be dropped.
        keep = {*SERVICES, "zones", "__init__.py"}
        return [n for n in names if n == "__pycache__" or (is_services and n not in keep)]

    copy = packages / "google" / "cloud" / "compute_v1"
    shutil.copytree(INSTALLED, copy, ignore=others)
    prune_compute(packages)
    return packages


LOOK = """
import inspect, json
from google.cloud import compute_v1
from google.cloud.compute_v1.types import compute
from tests.providers.google import test_provider, wire

with wire.serving() as served:
    passed = []
    for name, test in vars(test_provider).items():
        if name.startswith("test_") and list(inspect.signature(test).parameters) == ["wire"]:
            served.reset()
            test(served)
            passed.append(name)

messages = {
    name: sorted(value.meta.fields)
    for name, value in vars(compute).items() if hasattr(value, "meta")
}
clients = {
    name: sorted(dir(getattr(compute_v1, name)))
    for name in ("InstancesClient", "ZoneOperationsClient", "DisksClient")
}
file = compute_v1.__file__
print(json.dumps({"file": file, "messages": messages, "clients": clients, "passed": passed}))
"""


def test_it_is_the_same_to_the_library_and_to_the_providers_tests(pruned: Path) -> None:
    path = os.pathsep.join([str(pruned), str(ROOT / "layers" / "shared" / "python"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["file"].startswith(str(pruned))
    assert len(found["passed"]) > 5
    assert {"Instance", "Operation", "InsertInstanceRequest"} <= found["messages"].keys()
    assert len(found["messages"]) < 400
    for name, fields in found["messages"].items():
        assert fields == sorted(getattr(compute_v1.types, name).meta.fields)
    for name, members in found["clients"].items():
        assert members == sorted(dir(getattr(compute_v1, name)))


def test_what_is_kept_is_what_the_library_imports(pruned: Path) -> None:
    code = "".join(path.read_text() for path in PROVIDER.glob("*.py"))
    imported = set(re.findall(r"google\.cloud\.compute_v1\.services\.(\w+)", code))

    assert imported == SERVICES
    kept = {p.name for p in (pruned / "google/cloud/compute_v1/services").iterdir() if p.is_dir()}
    assert kept == SERVICES


def test_a_service_that_does_not_exist_is_refused(pruned: Path) -> None:
    with pytest.raises(ValueError, match="no service perhaps"):
        prune_compute(pruned, frozenset({"perhaps"}))
