"""``make dev``: the whole system on this machine, until Ctrl-C.

Starts the stage and its machines, says how to reach it, and hands over to whoever watches.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from infra.local.children import ChildError, is_free
from infra.local.stage import ACCESS_TOKEN, CLIENT_ID, LocalStage
from infra.local.synth import ROOT

if TYPE_CHECKING:
    from types import FrameType

Watch = Callable[[LocalStage], None]
"""What happens while the stage is up; returning ends it."""

_FIRST_TICKS = ("provision-tick-aws", "scan-tick-aws")


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """Turn the first Ctrl-C or SIGTERM into ``KeyboardInterrupt``; later ones must not disturb."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(watch: Watch, *, port: int) -> int:
    """Bring everything up, watch, take everything down; the exit code."""
    if not is_free(port):
        print(f"Port {port} is taken; choose another one: make dev PORT=…", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt_once)
    began = time.monotonic()
    print("Starting …", flush=True)
    try:
        with LocalStage(folder=ROOT / "build" / "run" / "dev", port=port) as stage:
            stage.start("machines", ["infra.local.machines", "--cloud", stage.ec2_url])
            for name in _FIRST_TICKS:
                # The schedules' first call is a minute away; nobody needs to wait for it.
                stage.tick(name, at=datetime.now(UTC))
            print(greeting(stage.root_url, seconds=time.monotonic() - began), flush=True)
            watch(stage)
    except KeyboardInterrupt:
        print("\nStopped.")
    return 0


def greeting(root_url: str, *, seconds: float) -> str:
    """How to reach the service, ready to be pasted into a shell."""
    return "\n".join(
        (
            f"The worker manager answers at {root_url} (up after {seconds:.1f} s)",
            "",
            f"  export TASKCLUSTER_ROOT_URL={root_url}",
            f"  export TASKCLUSTER_CLIENT_ID={CLIENT_ID}",
            f"  export TASKCLUSTER_ACCESS_TOKEN={ACCESS_TOKEN}",
            "",
            "Ctrl-C stops everything.",
        )
    )


def watch_children(stage: LocalStage) -> None:
    """Wait; raise ``ChildError`` if a part of the stage ends by itself."""
    while True:
        for child in stage.dead_children():
            raise ChildError(f"{child.name} has ended:\n{child.last_words()}")
        time.sleep(0.5)


def main(arguments: list[str]) -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="make dev")
    parser.add_argument("--port", type=int, default=5080)
    return run(watch_children, port=parser.parse_args(arguments).port)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
