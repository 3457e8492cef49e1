"""The last rung: people are told, with one request to whatever keeps their tickets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from worker_manager_agent.failures import NotDoneError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager_agent.inventory import Ticket


@dataclass(frozen=True, slots=True)
class Case:
    """What a ticket is about, in words."""

    host: str
    worker: str
    run: str
    action: str
    requested_by: str
    reason: str
    attempts: str


async def file(facts: Ticket, case: Case, http: aiohttp.ClientSession) -> str:
    """Tell people."""
    headers = {**facts.headers, "Idempotency-Key": case.run}
    if facts.token is not None:
        headers["Authorization"] = f"Bearer {facts.token.get_secret_value()}"
    words = {name: getattr(case, name) for name in Case.__slots__}
    try:
        async with http.post(
            facts.url,
            json=filled(facts.body, words),
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=facts.timeout_seconds),
        ) as response:
            if response.status >= 300:
                raise NotDoneError(f"the ticket is answered with {response.status}")
    except aiohttp.ClientConnectorError as error:
        raise NotDoneError(f"no connection: {error}") from error
    return "a ticket was filed"


def filled(template: Any, words: Mapping[str, str]) -> Any:
    """A template with its ``{names}`` replaced, each once: what is put in is not looked at."""
    if isinstance(template, dict):
        return {name: filled(value, words) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, words) for value in template]
    if not isinstance(template, str):
        return template
    head, *parts = template.split("{")
    text = head
    for part in parts:
        name, brace, rest = part.partition("}")
        text += words[name] + rest if brace and name in words else "{" + part
    return text
