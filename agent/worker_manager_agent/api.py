"""The worker manager's HTTP API: claim, heartbeat, resolve; every request signed with Hawk.

A request that failed on the way, or was answered with 429 or 5xx, is repeated a few times: each
of them may be said twice.  409 means that nothing more may be done, and is never repeated.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import aiohttp
import mohawk  # type: ignore[import-untyped]
from pydantic import BaseModel, ValidationError

from worker_manager_agent.answers import body_of
from worker_manager_agent.failures import ApiError, LeaseLostError
from worker_manager_agent.messages import Beat, Claims

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager_agent.config import Credentials, Settings
    from worker_manager_agent.messages import Claimed

M = TypeVar("M", bound=BaseModel)

TRIES = 5
LONGEST_ANSWER = 4 * 1024 * 1024
"""Bytes."""
LONGEST_TEXT = 2000
"""Characters of what can be told at once."""
JSON = "application/json"
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""What the worker manager takes in no text."""


class Api:
    """Asks one worker manager as one agent."""

    def __init__(
        self,
        settings: Settings,
        credentials: Credentials,
        http: aiohttp.ClientSession,
        *,
        chance: Callable[[], float],
    ) -> None:
        """``chance`` gives numbers from 0 to 1, so that agents do not all repeat at once."""
        self._base = f"{settings.root_url}/api/worker-registry/v1"
        self._agent_id = settings.agent_id
        self._http = http
        self._timeout = aiohttp.ClientTimeout(total=settings.request_seconds)
        self._retry_seconds = settings.retry_seconds
        self._chance = chance
        self._identity = {
            "id": credentials.client_id,
            "key": credentials.access_token.get_secret_value(),
            "algorithm": "sha256",
        }
        self._ext = _ext(credentials)

    async def claim(self, *, most: int) -> list[Claimed]:
        """Take up what is to be done now, and nobody has."""
        path = f"/agents/{quote(self._agent_id, safe='')}/claim"
        return _understood(Claims, await self._post(path, {"most": most})).runs

    async def heartbeat(self, run_id: str, body: dict[str, Any]) -> Beat:
        """Keep a run, and tell of it.  ``LeaseLostError``: stop."""
        return _understood(Beat, await self._post(_run_path(run_id, "heartbeat"), body))

    async def resolve(self, run_id: str, lease_id: str, *, state: str, message: str) -> None:
        """Be done with a run.  ``LeaseLostError`` if somebody else was first."""
        body = {"leaseId": lease_id, "state": state, "message": plain(message)}
        await self._post(_run_path(run_id, "resolve"), body)

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        failure = ""
        for number in range(TRIES):
            if number:
                wait = self._retry_seconds * 2 ** (number - 1)
                await asyncio.sleep(wait * (0.5 + self._chance() / 2))
            try:
                status, answer = await self._once(f"{self._base}{path}", json.dumps(body).encode())
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failure = f"{type(error).__name__}: {error}"
                continue
            if status == 409:
                raise LeaseLostError(_message(answer))
            if status == 429 or status >= 500:
                failure = f"{status}: {_message(answer)}"
                continue
            if status >= 300:
                raise ApiError(f"{path}: {status}: {_message(answer)}")
            return answer
        raise ApiError(f"{path}: {failure}")

    async def _once(self, url: str, body: bytes) -> tuple[int, Any]:
        """One request, signed anew: a signature is good once."""
        signature = mohawk.Sender(
            self._identity, url, "POST", content=body, content_type=JSON, ext=self._ext
        ).request_header
        async with self._http.post(
            url,
            data=body,
            headers={"Authorization": signature, "Content-Type": JSON},
            timeout=self._timeout,
            allow_redirects=False,
        ) as response:
            try:
                return response.status, json.loads(await body_of(response, most=LONGEST_ANSWER))
            except (ValueError, RecursionError):
                return (response.status if response.status >= 300 else 502), None


def plain(text: str) -> str:
    """A text as it can be told, whatever a machine said: else nothing of it would be taken."""
    return _UNPRINTABLE.sub("?", text)[:LONGEST_TEXT]


def _run_path(run_id: str, verb: str) -> str:
    return f"/action-runs/{quote(run_id, safe='')}/{verb}"


def _understood(model: type[M], answer: Any) -> M:
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise ApiError(f"an answer makes no sense: {error.errors()[0]['msg']}") from error


def _ext(credentials: Credentials) -> str | None:
    """What a signature with temporary credentials carries."""
    if credentials.certificate is None:
        return None
    certificate = json.loads(credentials.certificate.get_secret_value())
    return base64.b64encode(json.dumps({"certificate": certificate}).encode()).decode()


def _message(answer: Any) -> str:
    said = answer.get("message") if isinstance(answer, dict) else None
    return str(said or "no JSON")[:500]
