"""The local stage's template, synthesised anew only when something it depends on has changed.

``python -m infra.local.synth``
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

from infra.build_layers import CLOUDS, HERE, PULSE, RUNTIME, build

ROOT = Path(__file__).resolve().parents[2]

_OUT = ROOT / "build" / "cdk.local"
_DEPENDS_ON = (
    "infra/*.py",
    "infra/constructs/*.py",
    "infra/local/synth.py",
    "layers/shared/python/worker_manager/store/*.py",
    "layers/*/requirements.lock",
    "pyproject.toml",
)


def _wanted_stamp() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for pattern in _DEPENDS_ON:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    digest.update(repr(sorted(path.name for path in (ROOT / "functions").iterdir())).encode())
    return digest.hexdigest()


def local_template() -> Path:
    """Build the layers and synthesise, each unless current; return the template's path.

    Functions and the shared layer are uploaded from where they lie, so that a change to them
    needs no synthesis.
    """
    for layer in (RUNTIME, *CLOUDS):
        build(layer, target=HERE)
    stamp = _OUT.with_suffix(".stamp")
    _OUT.parent.mkdir(parents=True, exist_ok=True)
    with _OUT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = _wanted_stamp()
        if not stamp.exists() or stamp.read_text() != wanted:
            # In a process of its own: CDK's engine is large, and stays until its process ends.
            subprocess.run([sys.executable, "-m", "infra.local.synth"], check=True, cwd=ROOT)
            stamp.write_text(wanted)
    return _OUT / "WorkerManager.template.json"


def _name_of(folder: Path) -> str:
    """A hash of the folder's place, not of its content, which may change after synthesis."""
    return hashlib.sha256(str(folder).encode()).hexdigest()


def main() -> None:
    """Synthesise into the folder that ``local_template`` answers with."""
    from infra.app import synthesise  # noqa: PLC0415 -- heavy, and needed in this process only
    from infra.settings import STAGES  # noqa: PLC0415
    from infra.stack import Code  # noqa: PLC0415

    code = Code(
        functions=ROOT / "functions",
        shared_layer=ROOT / "layers" / "shared",
        runtime_layer=HERE.folder(RUNTIME),
        pulse_layer=HERE.folder(PULSE),
        cloud_layers={cloud: HERE.folder(cloud) for cloud in CLOUDS},
        hash_of=_name_of,
    )
    synthesise(STAGES["local"], code=code, outdir=_OUT, in_place=True)


if __name__ == "__main__":
    main()
