"""``make dev``: what it says, and what stops it."""

from __future__ import annotations

import signal
import socket

import pytest

from infra.local.runner import greeting, interrupt_once, run
from infra.local.stage import ACCESS_TOKEN, CLIENT_ID, LocalStage, auth_document, scheduled_event
from worker_manager.core.moments import from_wire
from worker_manager.taskcluster.clients import Clients


def _never(_stage: LocalStage) -> None:
    raise AssertionError("nothing was to be started")


def test_a_taken_port_is_said_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert run(_never, port=port) == 1

    assert f"Port {port} is taken" in capsys.readouterr().err


def test_the_greeting_can_be_pasted_into_a_shell() -> None:
    lines = [line.strip() for line in greeting("http://127.0.0.1:5080", seconds=1).splitlines()]

    assert "export TASKCLUSTER_ROOT_URL=http://127.0.0.1:5080" in lines
    assert "export TASKCLUSTER_CLIENT_ID=local/dev" in lines
    assert "export TASKCLUSTER_ACCESS_TOKEN=local-development-only-no-secret" in lines


def test_a_second_ctrl_c_does_not_disturb_the_clearing_up() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupt_once(signal.SIGINT, None)

        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_the_local_clients_are_what_the_library_reads() -> None:
    clients = Clients.from_json(auth_document())

    assert clients.by_id[CLIENT_ID].access_token == ACCESS_TOKEN
    assert clients.by_id[CLIENT_ID].scopes == ("*",)
    assert clients.issuer.client_id != CLIENT_ID


def test_a_scheduled_event_names_its_time_and_rule() -> None:
    event = scheduled_event("provision-tick-aws", at=from_wire("2026-11-30T12:00:00.000Z"))

    assert event["time"] == "2026-11-30T12:00:00Z"
    assert event["resources"] == [
        "arn:aws:events:us-east-1:000000000000:rule/wm-local-provision-tick-aws"
    ]
