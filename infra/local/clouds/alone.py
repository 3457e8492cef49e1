"""Running one simulated cloud as a process of its own.  Read next: a cloud's ``__main__``."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from infra.local.clouds.keys import SigningKey

if TYPE_CHECKING:
    from contextlib import ExitStack
    from typing import Any

    from infra.local.clouds.server import CloudServer


def arguments_of(module: str) -> ArgumentParser:
    """The arguments that every cloud takes."""
    parser = ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--config", type=Path, help="JSON control document")
    parser.add_argument("--key", type=Path, help="PEM of the key that signs machines' identities")
    parser.add_argument("--seed", type=int, help="makes ids and chance repeatable")
    return parser


def key_from(path: Path | None) -> SigningKey | None:
    """The key of a PEM file, if one is given."""
    return SigningKey.from_pem(path.read_text()) if path else None


def serve_until_told(server: CloudServer[Any], open_until_the_end: ExitStack) -> None:
    """Serve until SIGTERM or Ctrl-C; prints the endpoint once it answers."""
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    print(open_until_the_end.enter_context(server).url, flush=True)
    stop.wait()
