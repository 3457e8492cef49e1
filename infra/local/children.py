"""Processes that we start, wait for, and end by their id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOOPBACK = "127.0.0.1"


class ChildError(Exception):
    """A process of ours did not come up, or ended by itself."""


def free_port() -> int:
    """A port of loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) != 0


def hindrance(port: int) -> str | None:
    """What keeps us from listening on this port of loopback, in words; ``None`` if nothing does."""
    if not is_free(port):
        return "is taken"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return f"cannot be used ({error.strerror})"
    return None


def clean_environment(*, home: Path, path: str, **more: str) -> dict[str, str]:
    """An environment built from nothing.

    What a developer happens to have set (profiles, proxies, Python's own variables) never reaches
    the system under test.
    """
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": f"{path}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(home),
        "TMPDIR": str(home),
        "NO_PROXY": "*",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        **more,
    }


class Child:
    """One process in a session of its own: a Ctrl-C in the terminal reaches only us."""

    def __init__(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for_port(self, port: int, *, seconds: float = 30) -> Self:
        """Return once something listens on the port; ``ChildError`` if it ends or takes longer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.is_running:
                raise ChildError(f"{self.name} ended at its start:\n{self.last_words()}")
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    return self
            time.sleep(0.02)
        raise ChildError(f"{self.name} does not listen on {port}:\n{self.last_words()}")

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def last_words(self, *, lines: int = 20) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, *, grace_seconds: float = 10) -> None:
        """Ask it to end, then insist; what it started ends with it.  Fine if it has ended."""
        if self.is_running:
            self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
