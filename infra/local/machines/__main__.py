"""Run machines for simulated clouds: ``python -m infra.local.machines --cloud ec2=URL``.

``--cloud`` may be repeated, for ``ec2``, ``compute`` and ``arm``.  ``--rules`` names a JSON file
with a rule table (see ``behaviour.Rules.from_document``).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event

from infra.local.machines.behaviour import Rules
from infra.local.machines.fleet import MachineFleet
from infra.local.machines.hypervisor import HYPERVISORS


def main(arguments: list[str]) -> None:
    """Run until SIGTERM or Ctrl-C; prints what the machines did at the end."""
    parser = argparse.ArgumentParser(prog="python -m infra.local.machines")
    parser.add_argument(
        "--cloud",
        required=True,
        action="append",
        type=_cloud,
        metavar="KIND=URL",
        help="a simulated cloud",
    )
    parser.add_argument("--rules", type=Path, help="JSON rule table")
    parser.add_argument("--seed", type=int, default=0, help="chooses who misbehaves")
    given = parser.parse_args(arguments)
    document = json.loads(given.rules.read_text()) if given.rules else {}
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    rules = Rules.from_document(document, seed=given.seed)
    with ExitStack() as until_stopped:
        fleets = {
            kind: until_stopped.enter_context(MachineFleet(url, kind=kind, rules=rules))
            for kind, url in given.cloud
        }
        stop.wait()
    print(json.dumps({kind: fleet.outcomes for kind, fleet in fleets.items()}, sort_keys=True))


def _cloud(text: str) -> tuple[str, str]:
    kind, _, url = text.partition("=")
    if kind not in HYPERVISORS or not url:
        raise argparse.ArgumentTypeError(f"{text!r} is no KIND=URL of {', '.join(HYPERVISORS)}")
    return kind, url


if __name__ == "__main__":
    main(sys.argv[1:])
