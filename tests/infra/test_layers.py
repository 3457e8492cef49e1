"""Layers: what is pruned, what is refused, and that nothing is missing in them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from infra.build_layers import (
    AWS_SERVICES,
    HERE,
    LAMBDA,
    LAYERS,
    SIZE_LIMIT_MB,
    LayerError,
    build,
    compiler,
    foreign_libraries,
    prune,
    refuse_oversize,
    size_mb,
)

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "layers" / "shared" / "python"


def _pins(path: Path) -> set[str]:
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def _project() -> dict[str, set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return {
        "runtime": set(project["dependencies"]),
        "google": set(extras["google"]),
        "azure": set(extras["azure"]),
        "pulse": set(extras["amqp"]),
    }


@pytest.mark.parametrize("layer", ["runtime", "google", "azure", "pulse"])
def test_a_layer_has_what_the_project_depends_on(layer: str) -> None:
    folder = ROOT / "layers" / layer

    assert _pins(folder / "requirements.txt") == _project()[layer]
    assert _pins(folder / "requirements.txt") <= _pins(folder / "requirements.lock")


@pytest.mark.parametrize("layer", ["runtime", "google", "azure", "pulse"])
def test_a_lock_pins_every_version_and_names_no_index(layer: str) -> None:
    locked = _pins(ROOT / "layers" / layer / "requirements.lock")

    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in locked)


def test_layers_that_meet_in_one_function_agree_on_versions() -> None:
    versions: dict[str, set[str]] = {}
    for lock in (ROOT / "layers").glob("*/requirements.lock"):
        for line in _pins(lock):
            name, _, version = line.partition("==")
            versions.setdefault(name, set()).add(version)

    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_pruning_keeps_what_functions_read(tmp_path: Path) -> None:
    kept = [
        "botocore/data/dynamodb/2012-08-10/service-2.json.gz",
        "botocore/data/endpoints.json",
        "pydantic/main.py",
        "pydantic-2.dist-info/METADATA",
    ]
    dropped = [
        "bin/tool",
        "botocore/data/polly/2016-06-10/service-2.json.gz",
        "boto3/examples/s3.rst",
        "package/tests/test_it.py",
        "package/tests/tests/deep.py",
        "package/typed.pyi",
        "pydantic-2.dist-info/RECORD",
    ]
    for name in (*kept, *dropped):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    prune(tmp_path)

    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == set(kept)


def test_a_library_for_other_processors_is_found(tmp_path: Path) -> None:
    def library(name: str, machine: int) -> None:
        (tmp_path / name).write_bytes(b"\x7fELF" + bytes(14) + machine.to_bytes(2, "little"))

    library("ours.so", 183)
    library("foreign.so", 62)

    assert [found.name for found in foreign_libraries(tmp_path, "aarch64")] == ["foreign.so"]


def test_a_function_whose_layers_are_too_large_together_is_refused() -> None:
    sizes = {"shared": 2.0, "runtime": 60.0, "google": SIZE_LIMIT_MB - 62.0, "azure": 100.0}
    refuse_oversize(sizes)

    with pytest.raises(LayerError, match="azure"):
        refuse_oversize({**sizes, "azure": SIZE_LIMIT_MB - 61.0})


def test_no_function_is_too_large_here() -> None:
    sizes = {layer: size_mb(build(layer, target=HERE)) for layer in LAYERS}

    refuse_oversize({**sizes, "shared": size_mb(SHARED)})


def test_only_the_very_python_of_the_target_compiles() -> None:
    found = compiler(LAMBDA)

    assert compiler(HERE) == sys.executable
    if found:
        answer = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
        assert answer.stdout.startswith(f"Python {LAMBDA.python}.")


def test_the_library_finds_all_it_imports_in_the_layers() -> None:
    """Without this project's environment, as on Lambda: a missing requirement shows here."""
    layers = [str(build(layer, target=HERE) / "python") for layer in LAYERS]
    modules = sorted(
        ".".join(path.relative_to(SHARED).with_suffix("").parts).removesuffix(".__init__")
        for path in (SHARED / "worker_manager").rglob("*.py")
    )
    code = (
        f"import sys, importlib; sys.path[:0] = {[str(SHARED), *layers]!r}\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
    )

    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=False
    )

    assert answer.returncode == 0, answer.stderr


def test_the_layer_keeps_what_botocore_needs_for_every_service_that_is_called() -> None:
    called = {
        name
        for source in (SHARED / "worker_manager").rglob("*.py")
        for name in re.findall(r"(?:client|make)\(\s*\"(\w+)\"", source.read_text())
    }

    assert {"sqs", "sesv2", "events"} <= called
    assert called <= AWS_SERVICES
