"""What may be done with provisioners, worker types and workers, as declared and as offered.

Where to read next: ``declarations``, by which it is declared; ``action_runs``, by which it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.actions import declared
from worker_manager.actions.entities import Context, Level, Target
from worker_manager.api.action_schemas import ActionsResponse, DeclaredAction, OfferedAction
from worker_manager.api.routing import Route
from worker_manager.core.scopes import missing_scopes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker_manager.actions.entities import Action, Offered
    from worker_manager.api.deps import RegistryAccess, RegistryDeps
    from worker_manager.api.routing import Call
    from worker_manager.core.model import Json
    from worker_manager.registry.entities import Provisioner, RegistryWorker, WorkerType

_P = "<provisionerId>"
_TYPE = f"{_P}/<workerType>"
PATHS = {
    Context.PROVISIONER: ("Provisioner", f"/provisioners/{_P}", _P),
    Context.WORKER_TYPE: ("WorkerType", f"/provisioners/{_P}/worker-types/<workerType>", _TYPE),
    Context.WORKER: (
        "Worker",
        f"/provisioners/{_P}/worker-types/<workerType>/workers/<workerGroup>/<workerId>",
        f"{_TYPE}/<workerGroup>/<workerId>",
    ),
}
"""Of what may have actions: its word in names of calls, its path, its names as in scopes."""


def target_of(call: Call) -> Target:
    """The provisioner, worker type or worker that a path names."""
    given = call.params
    return Target(
        given["provisionerId"],
        given.get("workerType"),
        given.get("workerGroup"),
        given.get("workerId"),
    )


def list_actions(call: Call, deps: RegistryDeps) -> ActionsResponse:
    """All that may be done here, by whom it was declared, and what the caller lacks for it.

    Actions that are declared above are there as well; what is done to something else than this
    says so.  Of several by one name none is the first: running it takes a ``level``.
    """
    target = target_of(call)
    offered = deps.catalogue.offered(target)
    return ActionsResponse(actions=[_offered(one, target, call) for one in offered])


def said_actions(call: Call, level: Level, deps: RegistryAccess) -> dict[str, Any]:
    """The actions of a body, if it has any, as they are written down.

    A 400 that names the one that must not be, if one must not.
    """
    if "actions" not in call.body.model_fields_set:
        return {}
    given = (one.model_dump(by_alias=True, exclude_none=True) for one in call.body.actions)
    actions = [declared.from_json(one) for one in given]
    declared.check_all(actions, level, deps.action_hosts)
    return {"actions": tuple(declared.to_json(action) for action in actions)}


def provisioner_actions(one: Provisioner) -> list[DeclaredAction]:
    """What is declared at a provisioner, for whatever in it."""
    return _declared(Level.PROVISIONER, one.declaration.actions)


def worker_type_actions(one: WorkerType, deps: RegistryAccess) -> list[DeclaredAction]:
    """What is declared to be done to a worker type, there and above."""
    levels = {
        Level.PROVISIONER: _at_provisioner(one.provisioner_id, deps),
        Level.WORKER_TYPE: one.declaration.actions,
    }
    return _of_context(Context.WORKER_TYPE, levels)


def worker_actions(
    one: RegistryWorker, of_type: WorkerType | None, deps: RegistryAccess
) -> list[DeclaredAction]:
    """What is declared to be done to a worker, there and above."""
    provisioner_id = one.key.pool_id.partition("/")[0]
    levels = {
        Level.PROVISIONER: _at_provisioner(provisioner_id, deps),
        Level.WORKER_TYPE: of_type.declaration.actions if of_type is not None else (),
        Level.WORKER: one.actions,
    }
    return _of_context(Context.WORKER, levels)


def _at_provisioner(provisioner_id: str, deps: RegistryAccess) -> Iterable[Json]:
    found = deps.registry.provisioner(provisioner_id)
    return found.declaration.actions if found is not None else ()


def _of_context(context: Context, levels: Mapping[Level, Iterable[Json]]) -> list[DeclaredAction]:
    return [
        action
        for level, given in levels.items()
        for action in _declared(level, [one for one in given if one["context"] == context])
    ]


def _declared(level: Level, given: Iterable[Json]) -> list[DeclaredAction]:
    return [DeclaredAction.model_validate({**one, "declaredAt": level}) for one in given]


def _offered(one: Offered, target: Target, call: Call) -> OfferedAction:
    told = {**declared.to_json(one.action), "declaredAt": one.level}
    if one.refusal is not None:
        return OfferedAction.model_validate({**told, "runnable": False, "refusal": one.refusal})
    required = declared.scopes_to_run(one.action, target)
    held = call.identity.scopes if call.identity is not None else ()
    return OfferedAction.model_validate(
        {
            **told,
            **_filled(one.action, target),
            "runnable": True,
            "missingScopes": list(missing_scopes(held, required)),
        }
    )


def _filled(action: Action, target: Target) -> dict[str, Any]:
    filled: dict[str, Any] = {"requiredScopes": list(declared.filled_scopes(action, target))}
    if action.url is not None:
        filled["url"] = declared.expanded_url(action, target)
    return filled


def _listing(context: Context) -> Route[RegistryDeps]:
    word, path, names = PATHS[context]
    return Route(
        name=f"list{word}Actions",
        service="worker-registry",
        method="GET",
        path=f"{path}/actions",
        handler=list_actions,
        scopes=f"queue:get-{context}:{names}",
        response=ActionsResponse,
        stability="experimental",
    )


ACTION_ROUTES: tuple[Route[RegistryDeps], ...] = tuple(_listing(context) for context in Context)
