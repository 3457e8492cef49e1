"""``make dev``: the whole system on this machine, until Ctrl-C.

Starts the stage and its machines, says how to reach it, and hands over to whoever watches.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from infra.local.children import ChildError, hindrance
from infra.local.hardware import MACHINES, Hardware
from infra.local.samples import MACHINE_RULES, SAMPLE_RACK, SampleLoad
from infra.local.stage import ACCESS_TOKEN, CLIENT_ID, InvocationError, LocalStage
from infra.local.synth import ROOT
from infra.local.timeline import Timeline, follow
from infra.settings import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

Watch = Callable[[LocalStage], None]
"""What happens while the stage is up; returning ends it."""

DEFAULT_PORT = 5080

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a polite kill, a closed terminal."""

_FIRST_TICKS = tuple(
    f"{verb}-tick-{provider.provider_id}"
    for provider in STAGES["local"].providers
    if provider.has_loop
    for verb in ("provision", "scan")
)


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """Turn the first request to end into ``KeyboardInterrupt``; later ones must not disturb."""
    for each in _ENDINGS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(
    watch: Watch,
    *,
    port: int,
    name: str = "dev",
    clouds: Mapping[str, Mapping[str, Any]] | None = None,
    timings: Mapping[str, float] | None = None,
    machine_rules: Mapping[str, Any] = MACHINE_RULES,
) -> int:
    """Bring everything up, watch, take everything down; the exit code.

    ``name`` is the folder of its logs under ``build/run``; ``clouds`` are control documents of
    the simulated clouds, ``timings`` intervals in seconds by name, ``machine_rules`` a rule table
    of the simulated machines.
    """
    if why := hindrance(port):
        print(f"Port {port} {why}; choose another one: make dev PORT=…", file=sys.stderr)
        return 1
    for number in _ENDINGS:
        # Under nohup a closed terminal shall end nothing.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt_once)
    began = time.monotonic()
    print("Starting …", flush=True)
    folder = ROOT / "build" / "run" / name
    try:
        with LocalStage(
            folder=folder, port=port, clouds=clouds, timings=timings, notices=True
        ) as stage:
            _start_machines(stage, machine_rules)
            for scheduled in _FIRST_TICKS:
                # The schedules' first call is a minute away; nobody needs to wait for it.
                stage.tick(scheduled, at=datetime.now(UTC))
            seconds = time.monotonic() - began
            beside = {**stage.cloud_urls, "emulator": stage.emulator_endpoint}
            print(greeting(stage.root_url, beside, seconds=seconds), flush=True)
            watch(stage)
    except KeyboardInterrupt:
        print("\nStopped.")
    except (ChildError, InvocationError) as error:
        print(f"{error}\nMore is in {folder}.", file=sys.stderr)
        return 1
    return 0


def _start_machines(stage: LocalStage, rules: Mapping[str, Any]) -> None:
    table = stage.folder / "machines.json"
    table.write_text(json.dumps(rules))
    clouds = [f"--cloud={cloud}={url}" for cloud, url in stage.cloud_urls.items()]
    stage.start("machines", ["infra.local.machines", *clouds, "--rules", str(table)])


def greeting(root_url: str, beside: Mapping[str, str], *, seconds: float) -> str:
    """How to reach the service, and by name what is beside it, ready to be pasted into a shell."""
    return "\n".join(
        (
            f"The worker manager answers at {root_url} (up after {seconds:.1f} s)",
            "",
            f"  export TASKCLUSTER_ROOT_URL={root_url}",
            f"  export TASKCLUSTER_CLIENT_ID={CLIENT_ID}",
            f"  export TASKCLUSTER_ACCESS_TOKEN={ACCESS_TOKEN}",
            *(f"  export {name.upper()}={url}" for name, url in beside.items()),
            "",
            "Ctrl-C stops everything.",
        )
    )


def is_over(stage: LocalStage) -> bool:
    """Never, unless a part of the stage ends by itself, which is a ``ChildError``."""
    for child in stage.dead_children():
        raise ChildError(f"{child.name} has ended:\n{child.last_words()}")
    return False


def show_timeline(stage: LocalStage) -> None:
    """Print what happens until somebody stops it."""
    follow(Timeline(stage), until=lambda: is_over(stage))


def show_sample_load(stage: LocalStage) -> None:
    """The same, with sample pools that get a wave of tasks now and then, also one in a rack."""
    hardware = Hardware(stage, SAMPLE_RACK, MACHINES[:3])
    hardware.set_up()
    print(f"Machines in a rack, {SAMPLE_RACK}:\n\n  export RACK={hardware.url}\n", flush=True)
    load = SampleLoad(stage.root_url)

    def until() -> bool:
        load.go_on()
        return is_over(stage)

    follow(Timeline(stage), until=until)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 1 to 65535")
    return int(text)


def main(arguments: list[str]) -> int:
    """Parse the command line and run; stages on different ports do not share a folder."""
    parser = argparse.ArgumentParser(prog="make dev")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT)
    parser.add_argument("--no-load", action="store_true", help="without sample pool and tasks")
    given = parser.parse_args(arguments)
    return run(
        show_timeline if given.no_load else show_sample_load,
        port=given.port,
        name="dev" if given.port == DEFAULT_PORT else f"dev-{given.port}",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
