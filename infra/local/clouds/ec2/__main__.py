"""Run the simulated EC2 alone: ``python -m infra.local.clouds.ec2 --port 5081``.

``--config`` names a JSON file with a control document (see ``control``), applied at start.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from random import Random
from threading import Event

from infra.local.clouds.ec2.cloud import Ec2Cloud
from infra.local.clouds.ec2.control import apply
from infra.local.clouds.ec2.identity import SigningKey
from infra.local.clouds.ec2.notices import Announcer
from infra.local.clouds.ec2.server import Ec2Server
from infra.local.deploy import aws_client


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM or Ctrl-C; prints the endpoint once it answers."""
    parser = argparse.ArgumentParser(prog="python -m infra.local.clouds.ec2")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--config", type=Path, help="JSON control document")
    parser.add_argument("--key", type=Path, help="PEM of the key that signs identity documents")
    parser.add_argument("--events", help="endpoint of EventBridge to tell of instances")
    parser.add_argument("--seed", type=int, help="makes ids and chance repeatable")
    given = parser.parse_args(arguments)
    key = SigningKey.from_pem(given.key.read_text()) if given.key else None
    cloud = Ec2Cloud(rng=Random(given.seed), key=key)
    if given.config:
        apply(cloud, json.loads(given.config.read_text()))
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as open_until_the_end:
        if given.events:
            announcer = Announcer(aws_client("events", endpoint=given.events), cloud.clock)
            cloud.estate.announce = open_until_the_end.enter_context(announcer).announce
        server = open_until_the_end.enter_context(Ec2Server(cloud, port=given.port))
        print(server.url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
