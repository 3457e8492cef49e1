"""Run machines for a simulated cloud: ``python -m infra.local.machines --cloud URL``.

``--rules`` names a JSON file with a rule table (see ``behaviour.Rules.from_document``).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from threading import Event

from infra.local.machines.behaviour import Rules
from infra.local.machines.fleet import MachineFleet


def main(arguments: list[str]) -> None:
    """Run until SIGTERM or Ctrl-C; prints what the machines did at the end."""
    parser = argparse.ArgumentParser(prog="python -m infra.local.machines")
    parser.add_argument("--cloud", required=True, help="URL of the simulated cloud")
    parser.add_argument("--rules", type=Path, help="JSON rule table")
    parser.add_argument("--seed", type=int, default=0, help="chooses who misbehaves")
    given = parser.parse_args(arguments)
    document = json.loads(given.rules.read_text()) if given.rules else {}
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with MachineFleet(given.cloud, rules=Rules.from_document(document, seed=given.seed)) as fleet:
        stop.wait()
    print(json.dumps(fleet.outcomes, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
