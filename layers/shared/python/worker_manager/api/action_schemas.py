"""The wire: actions, as they are declared and as they are told.

What one field allows is said here; what fits together is judged in ``actions.declared``.
Where to read next: ``actions``, which uses them.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StringConstraints

from worker_manager.actions.hosts import LONGEST_URL
from worker_manager.api.validation import NO_DISGUISE, Answer, Identifier, Wire

MOST_ACTIONS = 50
MOST_PARAMS = 4 * 1024
"""Bytes of what is said besides: of an action to its agent, and of a run by its caller."""
MOST_SCOPES = 20

ContextName = Literal["provisioner", "worker-type", "worker"]
KindName = Literal["http", "builtin", "agent"]
LevelName = Literal["deployment", "provisioner", "worker-type", "worker"]
MethodName = Literal["POST", "PUT", "DELETE", "PATCH"]

ActionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,38}$")]
Title = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,80}$")]
Markdown = Annotated[str, StringConstraints(max_length=4000)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL)]
Scope = Annotated[str, StringConstraints(pattern=r"^[ -~]{1,300}$")]


def _fits(value: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if (size := len(text.encode("utf-8", "surrogatepass"))) > MOST_PARAMS:
        raise ValueError(f"takes {size} bytes, over {MOST_PARAMS}")
    return value


Params = Annotated[dict[str, Any], AfterValidator(_fits)]


class ActionRequest(Wire):
    """Something that may be done with a provisioner, a worker type or a worker.

    With the first six fields alone it is as Taskcluster had it: a request to another service.
    ``url`` is of that (``kind`` ``http``), ``operation`` of our own actions (``builtin``), and with
    ``params`` of an ``agent``.  ``confirm`` is for whoever asks people; times are in seconds.
    """

    name: ActionName
    title: Title
    context: ContextName
    url: Url | None = None
    method: MethodName | None = None
    description: Markdown = ""
    kind: KindName = "http"
    operation: ActionName | None = None
    agent_id: Identifier | None = None
    params: Params = Field(default={})
    required_scopes: Annotated[list[Scope], Field(max_length=MOST_SCOPES)] = Field(default=[])
    confirm: StrictBool = True
    bulk: StrictBool = False
    cooldown_seconds: Annotated[int, Field(ge=0, le=86_400), NO_DISGUISE] = 600
    timeout_seconds: Annotated[int, Field(ge=60, le=14_400), NO_DISGUISE] = 600
    most_at_once: Annotated[int, Field(ge=1, le=100), NO_DISGUISE] = 5


ActionsRequest = Annotated[list[ActionRequest], Field(max_length=MOST_ACTIONS)]
"""All actions that are declared in one place."""


class DeclaredAction(Answer):
    """An action as it was declared, and where: its URL and scopes have their placeholders."""

    name: str
    title: str
    context: ContextName
    url: str | None = None
    method: MethodName | None = None
    description: str
    kind: KindName
    declared_at: LevelName
    operation: str | None = None
    agent_id: str | None = None
    params: dict[str, Any] | None = None
    required_scopes: list[str]
    confirm: bool
    bulk: bool
    cooldown_seconds: int
    timeout_seconds: int
    most_at_once: int


class OfferedAction(DeclaredAction):
    """An action that a provisioner, worker type or worker has.

    Where it is ``runnable``, ``url`` and ``requiredScopes`` are filled in, and ``missingScopes``
    are those that the caller lacks; else ``refusal`` says why it cannot be done to this one.
    """

    runnable: bool
    refusal: str | None = None
    missing_scopes: list[str] | None = None


class ActionsResponse(Answer):
    """All actions that a provisioner, worker type or worker has, the widest declared first."""

    actions: list[OfferedAction]
