"""Run the simulated EC2 alone: ``python -m infra.local.clouds.ec2 --port 5081``.

``--config`` names a JSON file with a control document (see ``control``), applied at start.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from random import Random

from infra.local.clouds.alone import arguments_of, key_from, serve_until_told
from infra.local.clouds.ec2.cloud import Ec2Cloud
from infra.local.clouds.ec2.control import apply
from infra.local.clouds.ec2.notices import Announcer
from infra.local.clouds.ec2.server import Ec2Server
from infra.local.deploy import aws_client


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM or Ctrl-C; prints the endpoint once it answers."""
    parser = arguments_of("infra.local.clouds.ec2")
    parser.add_argument("--events", help="endpoint of EventBridge to tell of instances")
    given = parser.parse_args(arguments)
    cloud = Ec2Cloud(rng=Random(given.seed), key=key_from(given.key))
    if given.config:
        apply(cloud, json.loads(given.config.read_text()))
    with ExitStack() as open_until_the_end:
        if given.events:
            announcer = Announcer(aws_client("events", endpoint=given.events), cloud.clock)
            cloud.estate.announce = open_until_the_end.enter_context(announcer).announce
        serve_until_told(Ec2Server(cloud, port=given.port), open_until_the_end)


if __name__ == "__main__":
    main(sys.argv[1:])
