"""Builds the layers of third-party code, without Docker: ``make layers``.

Wheels are resolved from a layer's lock for the Lambda runtime (or, for ``make dev``, for this
machine), unpacked, pruned of what no function reads, and byte-compiled.  /opt is read-only on
Lambda, and zipping rounds file times: only ``.pyc`` that ignore times (unchecked hash) help there,
and only those of the very same Python.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infra.prune_compute import prune_compute
from infra.settings import ARCHITECTURE, PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ROOT = Path(__file__).resolve().parent.parent

RUNTIME = "runtime"
"""The layer of every function."""

PULSE = "pulse"
"""The layer of the one function that speaks AMQP."""

GOOGLE = "google"
"""The layer whose SDK is pruned by a recipe of its own."""

CLOUDS = ("azure", GOOGLE)
"""The layers of one cloud's SDK each, by provider type; AWS's SDK is in every function's layer."""

LAYERS = (RUNTIME, PULSE, *CLOUDS)
"""The layers that are built; a function has the first, and one of the others at most."""

AWS_SERVICES = frozenset(
    {"dynamodb", "ec2", "events", "s3", "secretsmanager", "sesv2", "sqs", "sts"}
)
"""The AWS services we call; botocore carries descriptions of four hundred."""

SIZE_LIMIT_MB = 200
"""Of all layers of one function; Lambda allows 250 MB for a function with them, unzipped."""

_ELF_MACHINES = {"aarch64": 183, "x86_64": 62}


class LayerError(Exception):
    """A layer that would not work on Lambda."""


@dataclass(frozen=True)
class Target:
    """Where a layer shall run: ``platform`` is uv's name for it, ``None`` this machine."""

    name: str
    python: str
    platform: str | None
    architecture: str | None

    def folder(self, layer: str) -> Path:
        """Where the layer is built."""
        return _ROOT / "build" / self.name / layer


LAMBDA = Target("layers", PYTHON, f"{ARCHITECTURE}-manylinux_2_28", ARCHITECTURE)
HERE = Target("local", f"{sys.version_info.major}.{sys.version_info.minor}", None, None)


def _lock(layer: str) -> Path:
    return _ROOT / "layers" / layer / "requirements.lock"


def content_hash(layer: str, *, target: Target) -> str:
    """What the built layer depends on: its lock, this recipe, the target, who can compile."""
    digest = hashlib.sha256()
    for path in (_lock(layer), Path(__file__), Path(__file__).with_name("prune_compute.py")):
        digest.update(path.read_bytes())
    digest.update(repr((target, compiler(target) is not None)).encode())
    return digest.hexdigest()


def compiler(target: Target) -> str | None:
    """A Python of the target's version, which alone can write its ``.pyc``; ``None`` if absent."""
    if target.python == HERE.python:
        return sys.executable
    for candidate in (f"python{target.python}", _found_by_uv(target.python)):
        if candidate and _version(candidate) == target.python:
            return candidate
    return None


def _found_by_uv(python: str) -> str | None:
    command = [_uv(), "python", "find", "--no-python-downloads", "--system", python]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def _version(python: str) -> str | None:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() or None


def _uv() -> str:
    return str(Path(sys.executable).parent / "uv")


def build(layer: str, *, target: Target) -> Path:
    """Build one layer unless it is current; return its folder, which holds ``python/``."""
    folder = target.folder(layer)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder.with_suffix(".stamp")
        wanted = content_hash(layer, target=target)
        if not stamp.exists() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)
            _build_anew(layer, folder, target)
            stamp.write_text(wanted)
    return folder


def _build_anew(layer: str, folder: Path, target: Target) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    packages = folder / "python"
    packages.mkdir(parents=True)
    _install(_lock(layer), packages, target)
    prune(packages)
    if layer == GOOGLE:
        prune_compute(packages)
    _compile(packages, target)
    _refuse_what_lambda_would(packages, target)


def _install(lock: Path, packages: Path, target: Target) -> None:
    command = [_uv(), "pip", "install", "--quiet", "--target", str(packages), "--no-deps"]
    command += ["--python-version", target.python, "--only-binary", ":all:", "-r", str(lock)]
    command += ["--link-mode", "copy"]
    if target.platform:
        command += ["--python-platform", target.platform]
    subprocess.run(command, check=True)


def prune(packages: Path) -> None:
    """Drop what no function reads: other services' descriptions, tests, stubs, install records."""
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for folder in _folders_named(packages, "tests"):
        shutil.rmtree(folder)
    for pattern in ("*.pyi", "*.dist-info/RECORD", "*.dist-info/INSTALLER"):
        for file in packages.rglob(pattern):
            file.unlink()
    shutil.rmtree(packages / "boto3" / "examples", ignore_errors=True)
    for described in (packages / "botocore" / "data", packages / "boto3" / "data"):
        for service in described.iterdir() if described.exists() else ():
            if service.is_dir() and service.name not in AWS_SERVICES:
                shutil.rmtree(service)


def _folders_named(packages: Path, name: str) -> list[Path]:
    found = [path for path in packages.rglob(name) if path.is_dir()]
    return [path for path in found if not any(parent in found for parent in path.parents)]


def _compile(packages: Path, target: Target) -> None:
    python = compiler(target)
    if python is None:
        print(f"  no CPython {target.python} here: built without .pyc, so cold starts are slower")
        return
    command = [python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(packages), "-p", "/opt/python", str(packages)]
    subprocess.run(command, check=True)


def _refuse_what_lambda_would(packages: Path, target: Target) -> None:
    if target.architecture:
        for library in foreign_libraries(packages, target.architecture):
            raise LayerError(f"{library} is not for {target.architecture}")
    print(f"  {packages.parent.name} for {target.name}: {size_mb(packages):.1f} MB")


def size_mb(folder: Path) -> float:
    """How much a folder's files hold, as Lambda counts it."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def refuse_oversize(sizes_mb: Mapping[str, float]) -> None:
    """Raises ``LayerError`` for a layer that no function could have beside those that all have.

    ``sizes_mb`` are those of all layers by name, and ``shared``'s.
    """
    everywhere = sizes_mb["shared"] + sizes_mb[RUNTIME]
    for layer in sizes_mb.keys() - {"shared", RUNTIME}:
        if (size := everywhere + sizes_mb[layer]) > SIZE_LIMIT_MB:
            raise LayerError(f"a function with {layer} has {size:.0f} MB, over {SIZE_LIMIT_MB}")


def foreign_libraries(packages: Path, architecture: str) -> Iterator[Path]:
    """The compiled libraries built for other processors than ``architecture``."""
    for library in packages.rglob("*.so"):
        with library.open("rb") as file:
            header = file.read(20)
        if int.from_bytes(header[18:20], "little") != _ELF_MACHINES[architecture]:
            yield library


def main() -> None:
    """Build every layer for Lambda."""
    sizes = {"shared": size_mb(_ROOT / "layers" / "shared")}
    for layer in LAYERS:
        folder = build(layer, target=LAMBDA)
        print(folder.relative_to(_ROOT))
        sizes[layer] = size_mb(folder)
    refuse_oversize(sizes)


if __name__ == "__main__":
    main()
