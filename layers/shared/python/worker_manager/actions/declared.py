"""What may be declared, what a target has of it, and which of that somebody means by a name.

Actions are declared at a provisioner, a worker type or a worker, and are there and at all below.
Of several by one name none wins, so that nobody puts another one before that which is meant.
Read next: ``catalogue``, which reads what is declared; ``placeholders`` and ``hosts``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.actions.entities import (
    COOLDOWN,
    MOST_AT_ONCE,
    TIMEOUT,
    Action,
    Context,
    Kind,
    Level,
    Offered,
    Operation,
)
from worker_manager.actions.hosts import LONGEST_URL
from worker_manager.actions.placeholders import fault_of, fill_scope, fill_url, longest
from worker_manager.core.errors import ConflictError, InputInvalidError, NotFoundError
from worker_manager.core.model import canonical_json
from worker_manager.core.scopes import AllOf, is_valid_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from worker_manager.actions.entities import Target
    from worker_manager.actions.hosts import Hosts
    from worker_manager.core.model import Json

MOST_BYTES = 16 * 1024
"""Of all actions that are declared in one place, as they are written down."""
LONGEST_SCOPES = 2000
"""Characters of all scopes of an action as filled in, so that they fit into a signature."""

MANY_AT_ONCE = 100
"""Runs of one of our own actions under way within a worker type at once, where each is short."""

METHODS = ("POST", "PUT", "DELETE", "PATCH")

_CONTEXTS = {
    Level.PROVISIONER: (Context.PROVISIONER, Context.WORKER_TYPE, Context.WORKER),
    Level.WORKER_TYPE: (Context.WORKER_TYPE, Context.WORKER),
    Level.WORKER: (Context.WORKER,),
}
"""What an action may be done to, by where it is declared: there, or below."""

_FIELDS = {
    Kind.HTTP: {"url", "method"},
    Kind.BUILTIN: {"operation"},
    Kind.AGENT: {"agent_id", "operation"},
}
"""What an action of a kind has, all of it; only agents get ``params`` besides."""
_NAMES = {"agent_id": "agentId"}

_BUILTINS = {
    Operation.KILL: (
        "Kill",
        "Stops the machine in its cloud. A machine that stays is quarantined and may not register "
        "again; a worker that only the queue knows is quarantined.",
    ),
    Operation.QUARANTINE: ("Quarantine", "Gives the worker no more tasks; those it has go on."),
    Operation.RELEASE: ("Release", "Gives a quarantined worker tasks again."),
    Operation.REBOOT: ("Reboot", "Reboots the machine through its cloud; its tasks are lost."),
}


def check(action: Action, level: Level, hosts: Hosts) -> None:
    """Refuse what must not be declared at ``level``: ``InputInvalidError`` naming the field.

    What must hold of each field by itself has been checked.
    """
    if action.context not in _CONTEXTS[level]:
        raise InputInvalidError(
            "context", f"an action for a {action.context} is not declared at a {level}"
        )
    _check_fields(action)
    if action.kind is Kind.HTTP:
        _check_url(action, hosts)
    if action.kind is Kind.BUILTIN and action.context is not Context.WORKER:
        raise InputInvalidError("context", f"{action.operation} is done to a worker")
    if action.is_bulk and action.context is not Context.WORKER:
        raise InputInvalidError("bulk", "only what is done to workers is done to many")
    _check_scopes(action)


def _check_fields(action: Action) -> None:
    wanted = _FIELDS[action.kind]
    for name in ("url", "method", "operation", "agent_id"):
        if (getattr(action, name) is None) == (name in wanted):
            wants = "field required" if name in wanted else "not"
            raise InputInvalidError(_NAMES.get(name, name), f"{wants} for kind {action.kind}")
    if action.params and action.kind is not Kind.AGENT:
        raise InputInvalidError("params", f"not for kind {action.kind}")
    if action.kind is Kind.BUILTIN and action.operation not in set(Operation):
        raise InputInvalidError("operation", f"must be one of {', '.join(Operation)}")


def _check_url(action: Action, hosts: Hosts) -> None:
    url = str(action.url)
    found = fault_of(url, action.context) or hosts.fault_of(url)
    if found is None and longest(url) > LONGEST_URL:
        found = f"can become longer than {LONGEST_URL} characters"
    if found is not None:
        raise InputInvalidError("url", found)


def _check_scopes(action: Action) -> None:
    for scope in action.required_scopes:
        if not is_valid_scope(scope):
            raise InputInvalidError("requiredScopes", f"{scope!r} is no scope")
        if (found := fault_of(scope, action.context)) is not None:
            raise InputInvalidError("requiredScopes", found)
    if sum(longest(scope) for scope in action.required_scopes) > LONGEST_SCOPES:
        raise InputInvalidError(
            "requiredScopes", f"can become longer than {LONGEST_SCOPES} characters"
        )


def check_all(actions: Sequence[Action], level: Level, hosts: Hosts) -> None:
    """Refuse a list of which one must not be declared, or two have one name, or too long a one."""
    size = len(
        canonical_json([to_json(action) for action in actions]).encode("utf-8", "surrogatepass")
    )
    if size > MOST_BYTES:
        raise InputInvalidError("actions", f"take {size} bytes, over {MOST_BYTES}")
    names: set[str] = set()
    for number, action in enumerate(actions):
        where = f"actions[{number}]"
        if action.name in names:
            raise InputInvalidError(f"{where}.name", f"{action.name!r} is there twice")
        names.add(action.name)
        try:
            check(action, level, hosts)
        except InputInvalidError as error:
            words = str(error).removeprefix(f"{error.field}: ")
            raise InputInvalidError(f"{where}.{error.field}", words) from None


def to_json(action: Action) -> Json:
    """An action as it is written down, and told; what it does not have is left out."""
    optional = {
        "url": action.url,
        "method": action.method,
        "operation": action.operation,
        "agentId": action.agent_id,
        "params": dict(action.params) or None,
    }
    return {
        "name": action.name,
        "title": action.title,
        "context": str(action.context),
        "description": action.description,
        "kind": str(action.kind),
        **{name: value for name, value in optional.items() if value is not None},
        "requiredScopes": list(action.required_scopes),
        "confirm": action.is_confirmed,
        "bulk": action.is_bulk,
        "cooldownSeconds": int(action.cooldown.total_seconds()),
        "timeoutSeconds": int(action.timeout.total_seconds()),
        "mostAtOnce": action.most_at_once,
    }


def from_json(given: Json) -> Action:
    """Back from ``to_json``; what is left out has its default."""
    return Action(
        name=given["name"],
        title=given["title"],
        context=Context(given["context"]),
        description=given.get("description", ""),
        kind=Kind(given.get("kind", Kind.HTTP)),
        url=given.get("url"),
        method=given.get("method"),
        operation=given.get("operation"),
        agent_id=given.get("agentId"),
        params=given.get("params") or {},
        required_scopes=tuple(given.get("requiredScopes", ())),
        is_confirmed=given.get("confirm", True),
        is_bulk=given.get("bulk", False),
        cooldown=_seconds(given, "cooldownSeconds", COOLDOWN),
        timeout=_seconds(given, "timeoutSeconds", TIMEOUT),
        most_at_once=given.get("mostAtOnce", MOST_AT_ONCE),
    )


def builtins_of(target: Target, *, can_reboot: bool) -> list[Offered]:
    """What every worker has; ``can_reboot`` is whether its cloud reboots it for us."""
    if target.context is not Context.WORKER:
        return []
    without = () if can_reboot else (Operation.REBOOT,)
    return [
        Offered(
            Action(
                name=str(operation),
                title=title,
                context=Context.WORKER,
                description=description,
                kind=Kind.BUILTIN,
                operation=str(operation),
                is_bulk=True,
                # Only what takes a while can be too much.
                cooldown=COOLDOWN if operation is Operation.REBOOT else timedelta(),
                most_at_once=MOST_AT_ONCE if operation is Operation.REBOOT else MANY_AT_ONCE,
            ),
            Level.DEPLOYMENT,
        )
        for operation, (title, description) in _BUILTINS.items()
        if operation not in without
    ]


def offered(
    target: Target, declared: Mapping[Level, Iterable[Json]], *, can_reboot: bool, hosts: Hosts
) -> list[Offered]:
    """All actions of ``target``: what every one has, then what is declared, the widest first.

    Also what is not done to it but to what it is in, or to what is in it, with a ``refusal``.
    """
    found = builtins_of(target, can_reboot=can_reboot)
    for level in Level:
        for given in declared.get(level, ()):
            action = from_json(given)
            refusal = _refusal(action, target, can_reboot=can_reboot, hosts=hosts)
            found.append(Offered(action, level, refusal))
    return found


def _refusal(action: Action, target: Target, *, can_reboot: bool, hosts: Hosts) -> str | None:
    if action.context is not target.context:
        return f"it is done to a {action.context}, not to a {target.context}"
    if action.kind is Kind.HTTP:
        found = hosts.fault_of(expanded_url(action, target))
        return found and f"its url {found}"
    if action.kind is Kind.BUILTIN and action.operation == Operation.REBOOT and not can_reboot:
        return "no cloud reboots this worker for us"
    return None


def find(
    candidates: Iterable[Offered], name: str, level: Level | None = None, *, context: Context
) -> Offered:
    """The one of a target's actions that somebody means; ``context`` is what the target is.

    ``NotFoundError`` if there is none by that name, ``ConflictError`` if there are several and
    no level is given, ``InputInvalidError`` if it cannot be done to this target.
    """
    named = [one for one in candidates if one.action.name == name and level in (None, one.level)]
    fitting = [one for one in named if one.action.context is context]
    if len(fitting) > 1:
        levels = ", ".join(one.level for one in fitting)
        raise ConflictError(f"there are several actions {name!r}: give a level of {levels}")
    if not named:
        raise NotFoundError(
            f"there is no action {name!r}" + (f" of level {level}" if level else "")
        )
    one = (fitting or named)[0]
    if one.refusal is not None:
        raise InputInvalidError("actionName", f"{name!r} cannot be done: {one.refusal}")
    return one


def expanded_url(action: Action, target: Target) -> str:
    """The URL that an ``http`` action has for a target of its context."""
    return fill_url(str(action.url), target)


def filled_scopes(action: Action, target: Target) -> tuple[str, ...]:
    """The action's ``required_scopes`` for a target of its context."""
    return tuple(fill_scope(scope, target) for scope in action.required_scopes)


def scopes_to_run(action: Action, target: Target) -> AllOf:
    """What somebody needs to have an action done: its own scope, and all that it requires.

    One of our own by another name needs that of what it does as well, so that nobody who may
    declare actions gives others a kill by the name of something harmless.
    """
    names = [action.name]
    if action.kind is Kind.BUILTIN and action.operation != action.name:
        names.append(str(action.operation))
    own = (f"worker-registry:run-action:{name}:{target}" for name in names)
    return AllOf((*own, *filled_scopes(action, target)))


def _seconds(given: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
    return timedelta(seconds=given[name]) if name in given else default
