"""Processes that the local stage starts, and ends."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import TYPE_CHECKING

import pytest

from infra.local.children import (
    LOOPBACK,
    Child,
    ChildError,
    clean_environment,
    free_port,
    hindrance,
    is_free,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LISTEN = "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1])));"


def start(tmp_path: Path, code: str, *arguments: str) -> Child:
    return Child(
        "child",
        [sys.executable, "-c", code, *arguments],
        environment=clean_environment(home=tmp_path / "home", path="/usr/bin"),
        log=tmp_path / "child.log",
    )


def test_nothing_of_the_developers_environment_reaches_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com")
    child = start(tmp_path, "import os; print(sorted(os.environ))")

    wait_until_ended(child)

    assert "AWS_PROFILE" not in child.last_words()
    assert "HTTPS_PROXY" not in child.last_words()
    assert "AWS_ACCESS_KEY_ID" in child.last_words()


def test_a_child_is_waited_for_until_it_listens_and_is_stopped(tmp_path: Path) -> None:
    port = free_port()
    child = start(tmp_path, f"{LISTEN} import time; time.sleep(60)", str(port))

    child.wait_for_port(port)
    child.stop()

    assert not child.is_running
    assert is_free(port)


def test_a_port_that_may_not_be_used_is_told_from_one_that_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server((LOOPBACK, 0)) as listening:
        assert hindrance(listening.getsockname()[1]) == "is taken"
    port = free_port()
    assert hindrance(port) is None

    def refuse(_probe: socket.socket, _address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    assert hindrance(port) == "cannot be used (Permission denied)"


def test_a_child_that_ends_at_its_start_says_why(tmp_path: Path) -> None:
    child = start(tmp_path, "raise SystemExit('no such file')")

    with pytest.raises(ChildError, match="no such file"):
        child.wait_for_port(free_port())


def test_a_child_that_ignores_the_request_is_ended_all_the_same(tmp_path: Path) -> None:
    port = free_port()
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    child = start(tmp_path, f"{stubborn} {LISTEN} time.sleep(60)", str(port))
    child.wait_for_port(port)

    child.stop(grace_seconds=0.2)

    assert not child.is_running


def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    port = free_port()
    grandchild = f"{LISTEN} import time; time.sleep(60)"
    code = "import subprocess, sys, time; subprocess.Popen([sys.executable, *sys.argv[1:]]);"
    child = start(tmp_path, f"{code} time.sleep(60)", "-c", grandchild, str(port))
    child.wait_for_port(port)

    child.stop()

    wait_until(lambda: is_free(port))


def test_a_ctrl_c_in_the_terminal_does_not_reach_children(tmp_path: Path) -> None:
    child = start(tmp_path, "import os; print(os.getsid(0), os.getpid())")

    wait_until_ended(child)

    session, process = child.last_words().split()
    assert session == process != str(os.getsid(0))


def wait_until_ended(child: Child) -> None:
    wait_until(lambda: not child.is_running)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
