"""``make demo`` plays its script to a good end."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from infra.local.children import clean_environment
from infra.local.hardware import MACHINES
from infra.local.scripts import AZURE, GOOGLE, PLAIN, SCARCE, SILENT, STEADY
from infra.local.synth import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.journey


@pytest.mark.timeout(420)
def test_the_demo_ends_well_and_says_what_happened(tmp_path: Path) -> None:
    played = subprocess.run(
        [sys.executable, "-m", "infra.local.demo"],
        cwd=ROOT,
        env=clean_environment(home=tmp_path, path=str(ROOT / ".venv" / "bin")),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    rows = {line.split()[0]: line for line in played.stdout.splitlines() if "/" in line}
    assert rows.keys() >= PLAIN.pools.keys()
    assert re.match(rf"{STEADY} +18/18 ", rows[STEADY])
    assert re.match(rf"{SCARCE} +10/10 .*lc-full no-capacity × \d", rows[SCARCE])
    assert re.match(rf"{GOOGLE} +8/8 ", rows[GOOGLE])
    assert re.match(rf"{AZURE} +8/8 ", rows[AZURE])
    assert re.match(rf"{SILENT} +0/2 .*lc-silent never-claimed × \d", rows[SILENT])
    table = played.stdout.splitlines()[-5:]
    of_rack = {line.split()[0]: line.partition("  ")[2] for line in table if " " in line}
    assert len(of_rack) == len(MACHINES)
    assert f"quarantined by an operator; kept its task: completed by {_named(of_rack, 'kept')}" in (
        of_rack.values()
    )
    assert "hung; ssh: error, redfish-reset: ok; " in of_rack[_named(of_rack, "hung")]
    assert "runs went wrong" in of_rack[_named(of_rack, "flaky")]
    assert table[-1] == "ok"


def _named(rows: dict[str, str], word: str) -> str:
    """The machine of which the table says that."""
    [found] = [name for name, told in rows.items() if word in told]
    return found
