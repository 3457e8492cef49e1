"""How the agent asks: signed, again where that may help, never after a 409; what holds a run."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import TYPE_CHECKING, Any

import aiohttp
import mohawk  # type: ignore[import-untyped]
import pytest
from aiohttp import web

from tests.agent.stage import RUN
from worker_manager_agent.api import TRIES, Api
from worker_manager_agent.config import Credentials, Settings
from worker_manager_agent.failures import ApiError, LeaseLostError
from worker_manager_agent.lease import Lease
from worker_manager_agent.messages import Claimed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TOKEN = "a-token-of-a-test"
CERTIFICATE = {"version": 1, "scopes": ["worker-registry:agent:dc1"]}
ME = {"client_id": "me", "access_token": TOKEN, "certificate": json.dumps(CERTIFICATE)}
HELD = {"state": "running", "leaseUntil": "2030-01-01T00:00:00.000Z"}


class Answers:
    """What is answered, one after the other; the last one again and again."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.left = list(answers)
        self.requests: list[tuple[str, Any]] = []

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        signature = request.headers["Authorization"]
        mohawk.Receiver(
            lambda _: {"id": "me", "key": TOKEN, "algorithm": "sha256"},
            signature,
            str(request.url),
            request.method,
            content=body,
            content_type=request.headers["Content-Type"],
        )
        ext = re.search('ext="([^"]*)"', signature)
        assert ext is not None
        assert json.loads(base64.b64decode(ext[1])) == {"certificate": CERTIFICATE}
        self.requests.append((request.path, json.loads(body)))
        status, answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return web.Response(status=status or 200, text=text)


def asking(answers: Answers, ask: Callable[[Api], Awaitable[Any]]) -> Any:
    async def asked() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answers.take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        settings = Settings.model_validate(
            {
                "root_url": f"http://127.0.0.1:{runner.addresses[0][1]}",
                "agent_id": "dc1",
                "inventory": "none",
                "task_queues": ["racks/*"],
                "retry_seconds": 0.0,
            }
        )
        try:
            async with aiohttp.ClientSession() as http:
                who = Credentials.model_validate(ME)
                return await ask(Api(settings, who, http, chance=lambda: 0.0))
        finally:
            await runner.cleanup()

    return asyncio.run(asked())


def test_a_question_is_repeated_while_that_may_help() -> None:
    answers = Answers((503, {}), (0, ""), (429, {}), (502, "<html>"), (200, {"runs": []}))
    assert asking(answers, lambda api: api.claim(most=2)) == []
    path = "/api/worker-registry/v1/agents/dc1/claim"
    assert answers.requests == [(path, {"most": 2})] * TRIES


@pytest.mark.parametrize(
    ("status", "answer", "error", "words", "times"),
    [
        (409, {"message": "over"}, LeaseLostError, "over", 1),
        (403, {"message": "no scope"}, ApiError, "403: no scope", 1),
        (302, {}, ApiError, "302", 1),
        (500, {}, ApiError, "500", TRIES),
        (200, "<html>", ApiError, "502", TRIES),
        (200, "[" * 100_000, ApiError, "502", TRIES),
        (200, {"state": 3}, ApiError, "makes no sense", 1),
    ],
)
def test_what_does_not_help_is_not_repeated(
    status: int, answer: Any, error: type[Exception], words: str, times: int
) -> None:
    answers = Answers((status, answer))
    with pytest.raises(error, match=words):
        asking(answers, lambda api: api.heartbeat(RUN, {}))
    assert len(answers.requests) == times


def held(api: Api, *, lease_seconds: float = 60.0, heartbeat_seconds: float = 0.01) -> Lease:
    run = {"runId": RUN, "action": {"name": "x"}, "target": {}, "state": "claimed"}
    return Lease(
        Claimed.model_validate({"run": run, "leaseId": "lease-1"}),
        api,
        heartbeat_seconds=heartbeat_seconds,
        lease_seconds=lease_seconds,
        monotonic=asyncio.get_running_loop().time,
        since=asyncio.get_running_loop().time(),
    )


@pytest.mark.parametrize(
    ("answer", "seconds", "words"),
    [
        ((409, {"message": "cancelled"}), (60.0, 0.01), "cancelled"),
        ((503, {}), (0.1, 0.01), "not reached in time"),
        ((503, {}), (0.1, 20.0), "not reached in time"),
    ],
)
def test_work_is_stopped_at_once_when_its_run_is_lost(
    answer: tuple[int, Any], seconds: tuple[float, float], words: str
) -> None:
    lease_seconds, heartbeat_seconds = seconds
    stopped: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    async def hold(api: Api) -> None:
        lease = held(api, lease_seconds=lease_seconds, heartbeat_seconds=heartbeat_seconds)
        async with asyncio.timeout(5):
            await lease.hold(work())

    with pytest.raises(LeaseLostError, match=words):
        asking(Answers((200, HELD), answer), hold)
    assert stopped


def test_a_run_is_kept_while_it_is_worked_on() -> None:
    answers = Answers((200, HELD))

    async def hold(api: Api) -> None:
        lease = held(api)

        async def work() -> None:
            await lease.begin(1, "ssh")
            while len(answers.requests) < 4:
                await asyncio.sleep(0.005)
            await lease.resolve("succeeded", "w" * 3000)

        await lease.hold(work())

    asking(answers, hold)
    bodies = [body for _, body in answers.requests]
    assert bodies[0] == {"leaseId": "lease-1", "begin": {"number": 1, "method": "ssh"}}
    assert bodies[1] == {"leaseId": "lease-1"}
    assert bodies[-1] == {"leaseId": "lease-1", "state": "succeeded", "message": "w" * 2000}


def test_what_a_machine_says_is_told_without_what_cannot_be_taken() -> None:
    answers = Answers((200, HELD))
    told = "\x1b[1mno\x00 \ud800\nlogin"
    asking(answers, lambda api: held(api).end(1, "error", told))
    [(_, body)] = answers.requests
    assert body["end"]["message"] == "?[1mno? ?\nlogin"
