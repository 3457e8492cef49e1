"""``worker-manager-agent --config agent.toml``: check everything, then work until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from worker_manager_agent.config import load_config
from worker_manager_agent.failures import ConfigError
from worker_manager_agent.service import Agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager_agent.config import Config

UNUSABLE = 78
"""Exit status of a configuration that cannot be used, as in ``sysexits.h``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent; its exit status."""
    parser = argparse.ArgumentParser(
        prog="worker-manager-agent",
        description="Reboots the machines of racks, as a worker manager asks for it.",
    )
    parser.add_argument("--config", type=Path, required=True, help="the agent's TOML file")
    parser.add_argument("--check", action="store_true", help="only check what the files say")
    given = parser.parse_args(arguments)
    try:
        config = load_config(given.config, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    if given.check:
        print(f"{len(config.hosts)} machines, nothing wrong")
        return 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    asyncio.run(_serve(config))
    return 0


async def _serve(config: Config) -> None:
    agent = Agent(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.stop)
    await agent.run()


if __name__ == "__main__":
    sys.exit(main())
