"""Run the simulated Azure alone: ``python -m infra.local.clouds.arm --port 5083``.

``--config`` names a JSON file with a control document (see ``control``), applied at start.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from random import Random

from infra.local.clouds.alone import arguments_of, key_from, serve_until_told
from infra.local.clouds.arm.cloud import ArmCloud
from infra.local.clouds.arm.control import apply
from infra.local.clouds.arm.server import SimulatedArm


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM or Ctrl-C; prints the endpoint once it answers."""
    given = arguments_of("infra.local.clouds.arm").parse_args(arguments)
    cloud = ArmCloud(rng=Random(given.seed), key=key_from(given.key))
    if given.config:
        apply(cloud, json.loads(given.config.read_text()))
    with ExitStack() as open_until_the_end:
        serve_until_told(SimulatedArm(cloud, port=given.port), open_until_the_end)


if __name__ == "__main__":
    main(sys.argv[1:])
