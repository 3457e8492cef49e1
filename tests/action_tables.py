"""Runs of actions over an in-memory table, and values for tests of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.factories import NOW
from worker_manager.actions.entities import Action, Context, Kind, Level, Run, Target
from worker_manager.actions.ledger import Runs
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.registry.entities import RegistryWorker
from worker_manager.store.action_items import ActionItem
from worker_manager.store.action_table import ActionTable
from worker_manager.store.tables import bind

if TYPE_CHECKING:
    from worker_manager.actions.known_runs import Sightings
    from worker_manager.store.tables import Tables

HOST = WorkerKey("hw/linux", "rack-1", "host-1")


def an_action_table(tables: Tables, name: str = "test-actions") -> ActionTable:
    """A table of its own, made inside whatever mock is active; ``tables`` have the outbox."""
    model = bind(ActionItem, name, tables.connection)
    model.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    return ActionTable(model, tables)


class Seen(dict[WorkerKey, datetime]):
    """A registry that knows when workers were seen, and of whom nearly every call is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: dict[WorkerKey, datetime] = {}

    def worker(self, key: WorkerKey) -> RegistryWorker | None:
        if key not in self:
            return None
        return RegistryWorker(key, created=self[key], last_seen=self[key])

    def watch(self, key: WorkerKey, *, until: datetime) -> None:
        self.watched[key] = until


def some_runs(tables: Tables, registry: Sightings | None = None, **options: Any) -> Runs:
    """A ledger; nobody was seen, and nobody is told, unless ``options`` say so."""
    given: dict[str, Any] = {"announce": lambda _key, _events: None}
    seen: Sightings = Seen() if registry is None else registry
    return Runs(an_action_table(tables), seen, **(given | options))


def an_action(name: str = "reboot", **overrides: Any) -> Action:
    """A reboot by the agent ``dc1``."""
    values: dict[str, Any] = {
        "title": name.title(),
        "context": Context.WORKER,
        "kind": Kind.AGENT,
        "agent_id": "dc1",
        "operation": name,
    }
    return Action(name=name, **(values | overrides))


def a_run(number: int = 1, *, key: WorkerKey = HOST, **overrides: Any) -> Run:
    """A run that was just asked for; fields of its action as ``action={...}``."""
    action = overrides.pop("action", {})
    values: dict[str, Any] = {
        "action": action if isinstance(action, Action) else an_action(**action),
        "level": Level.WORKER_TYPE,
        "target": Target.of_worker(key),
        "requested": NOW,
        "requested_by": "test/root",
    }
    return Run(run_id=derived_slugid("run", number), **(values | overrides))


def host(number: int) -> WorkerKey:
    """One of many machines in the same rack."""
    return WorkerKey(HOST.pool_id, HOST.group, f"host-{number}")


def later(**amount: float) -> Any:
    """So much after the runs of these tests were asked for."""
    return NOW + timedelta(**amount)
