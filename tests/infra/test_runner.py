"""``make dev``: what it says, and what stops it."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from infra.local import runner
from infra.local.children import free_port
from infra.local.runner import greeting, interrupt_once, main, run
from infra.local.stage import (
    ACCESS_TOKEN,
    AGENT_CLIENT_ID,
    AGENT_ID,
    CLIENT_ID,
    LocalStage,
    auth_document,
    scheduled_event,
)
from worker_manager.core.moments import from_wire
from worker_manager.taskcluster.clients import Clients

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handlers_restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _never(_stage: LocalStage) -> None:
    raise AssertionError("nothing was to be started")


def test_a_taken_port_is_said_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert run(_never, port=port) == 1

    assert f"Port {port} is taken" in capsys.readouterr().err


def test_the_greeting_can_be_pasted_into_a_shell() -> None:
    lines = [
        line.strip()
        for line in greeting("http://127.0.0.1:5080", {"arm": "http://x"}, seconds=1).splitlines()
    ]

    assert "export TASKCLUSTER_ROOT_URL=http://127.0.0.1:5080" in lines
    assert "export TASKCLUSTER_CLIENT_ID=local/dev" in lines
    assert "export ARM=http://x" in lines
    assert "export TASKCLUSTER_ACCESS_TOKEN=local-development-only-no-secret" in lines


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http"])
def test_what_is_no_port_is_refused_in_words(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--port={port}"])

    assert f"{port!r} is no port from 1 to 65535" in capsys.readouterr().err


def test_stages_on_different_ports_do_not_share_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    monkeypatch.setattr(runner, "run", lambda _watch, *, port, name: names.append((port, name)))

    main([])
    main(["--port", "5099"])

    assert names == [(5080, "dev"), (5099, "dev-5099")]


def test_a_second_ctrl_c_does_not_disturb_the_clearing_up() -> None:
    with handlers_restored():
        with pytest.raises(KeyboardInterrupt):
            interrupt_once(signal.SIGINT, None)

        assert {signal.getsignal(number) for number in ENDINGS} == {signal.SIG_IGN}


@pytest.mark.parametrize("ending", ENDINGS)
def test_ctrl_c_a_polite_kill_and_a_closed_terminal_take_everything_down(
    ending: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    class Stage:
        def __init__(self, **_arguments: object) -> None:
            pass

        def __enter__(self) -> None:
            os.kill(os.getpid(), ending)

        def __exit__(self, *_error: object) -> None:
            raise AssertionError("it never came up")

    monkeypatch.setattr(runner, "LocalStage", Stage)
    monkeypatch.setattr(runner, "print", lambda *words, **_: told.append(words), raising=False)
    with handlers_restored():
        signal.signal(ending, signal.SIG_DFL)  # whatever is ignored where the tests run
        assert run(_never, port=free_port()) == 0

    assert ("\nStopped.",) in told


def test_under_nohup_a_closed_terminal_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stage:
        def __init__(self, **_arguments: object) -> None:
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            raise KeyboardInterrupt

    monkeypatch.setattr(runner, "LocalStage", Stage)
    with handlers_restored():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert run(_never, port=free_port()) == 0


def test_the_local_clients_are_what_the_library_reads() -> None:
    clients = Clients.from_json(auth_document())

    assert clients.by_id[CLIENT_ID].access_token == ACCESS_TOKEN
    assert clients.by_id[CLIENT_ID].scopes == ("*",)
    assert clients.issuer.client_id != CLIENT_ID
    assert clients.by_id[AGENT_CLIENT_ID].scopes == (f"worker-registry:agent:{AGENT_ID}",)


def test_a_scheduled_event_names_its_time_and_rule() -> None:
    event = scheduled_event("provision-tick-aws", at=from_wire("2026-11-30T12:00:00.000Z"))

    assert event["time"] == "2026-11-30T12:00:00Z"
    assert event["resources"] == [
        "arn:aws:events:us-east-1:000000000000:rule/wm-local-provision-tick-aws"
    ]
