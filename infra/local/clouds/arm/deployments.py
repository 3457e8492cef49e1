"""Deployments of templates: records that make resources, step by step, and tell how it went.

Behaviour follows "Deployments" in the Azure REST API reference (Resources), "Deployment history"
and "Resolve error when deployment count exceeds 800".  Read next: ``templates`` (what is
asked for), ``rollout`` (how it is made).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm import templates
from infra.local.clouds.arm.errors import ArmError
from infra.local.clouds.arm.fates import Outcome, Step
from infra.local.clouds.arm.records import Deployment, State
from infra.local.clouds.arm.resources import Kind
from infra.local.clouds.arm.rollout import KINDS, Rollout, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.clouds.arm.building import Builder
    from infra.local.clouds.arm.estate import Estate
    from infra.local.clouds.arm.fates import Fate
    from infra.local.clouds.arm.lifecycle import Lifecycle
    from infra.local.clouds.arm.operations import Operation
    from infra.local.clouds.arm.settings import Settings
    from infra.local.clouds.arm.templates import Planned

Json = dict[str, Any]
PROVIDER = "Microsoft.Resources"


class Deployments:
    """All records of all resource groups.  Not thread-safe: the cloud's lock guards it."""

    def __init__(
        self,
        estate: Estate,
        lifecycle: Lifecycle,
        builder: Builder,
        *,
        settings: Callable[[], Settings],
    ) -> None:
        self.templates: dict[str, Json | None] = {}
        """By the id or URI of a template link; ``None`` is one that does not exist."""
        self._estate = estate
        self._lifecycle = lifecycle
        self._builder = builder
        self._settings = settings
        self._rollout = Rollout(builder, lifecycle)
        self._records: dict[str, dict[str, Deployment]] = {}

    def all(self) -> list[Deployment]:
        """Every record of every group."""
        return [one for records in self._records.values() for one in records.values()]

    def of_group(self, group: str) -> list[Deployment]:
        """The records of a group, newest first, as lists have them."""
        self._estate.group(group)
        return sorted(self._in(group).values(), key=lambda one: -one.sequence)

    def get(self, group: str, name: str) -> Deployment:
        """One record.  Raises ``ArmError`` DeploymentNotFound."""
        self._estate.group(group)
        if (found := self._in(group).get(name.lower())) is None:
            raise ArmError("DeploymentNotFound", f"Deployment '{name}' could not be found.")
        return found

    def put(self, group: str, name: str, body: Json, *, now: float) -> tuple[Deployment, bool]:
        """Begin a deployment; whether its name is new.  Raises ``ArmError``."""
        home = self._estate.group(group)
        known = self._in(group).get(name.lower())
        self._expect_room(group, name, known)
        request = body.get("properties") or {}
        template = self._template(request)
        given = request.get("parameters") or {}
        subscription = self._settings().subscription_id
        planned = templates.plan(template, given, subscription=subscription, group=home)
        self._check(name, planned)
        made = Deployment(
            group=home.name,
            name=name,
            sequence=next(self._estate.numbers),
            request=request,
            tags=dict(body.get("tags") or {}),
            parameters=templates.shown_parameters(template, given),
            steps=steps_of(planned),
            correlation_id=self._lifecycle.new_id(),
            operation=self._operation(now),
            begun_at=now,
            updated_at=now,
        )
        self._in(group)[name.lower()] = made
        fate = self._fate(Step.CREATE, made)
        start = now + self._settings().deployment_start_seconds
        self._plan(made, start, lambda at: self._rollout.start(made, at, fate))
        return made, known is None

    def delete(self, group: str, name: str, *, now: float) -> Operation | None:
        """Delete a record; ``None`` when there is none.  What it made stays."""
        self._estate.group(group)
        if (found := self._in(group).get(name.lower())) is None:
            return None
        self._expect_over(found)
        if found.state is State.DELETING and not found.operation.is_stuck:
            return found.operation
        before = State.SUCCEEDED if found.state is State.DELETING else found.state
        fate = self._fate(Step.DELETE, found)
        found.state, found.operation = State.DELETING, self._operation(now)
        if fate is not None and fate.outcome is Outcome.NEVER_ENDS:
            found.operation.is_stuck = True
            return found.operation

        def end(at: float) -> None:
            if fate is None:
                del self._in(group)[name.lower()]
            else:
                found.state = before
            failed = fate is not None and fate.outcome is Outcome.FAIL
            found.operation.end(at, fate.error if fate and failed else None)

        self._plan(found, now + self._settings().deployment_delete_seconds, end)
        return found.operation

    def cancel(self, group: str, name: str, *, now: float) -> None:
        """Begin nothing more; what is being made goes on.  Raises ``ArmError``."""
        found = self.get(group, name)
        if not found.state.is_active:
            message = f"The deployment '{name}' cannot be cancelled in state '{found.state}'."
            raise ArmError("DeploymentCannotBeCancelled", message)
        found.turn += 1
        self._rollout.end(found, now, State.CANCELED)

    def vanish(self, group: str, name: str) -> None:
        """Let a record be gone at once."""
        found = self.get(group, name)
        found.turn += 1
        del self._in(group)[name.lower()]

    def clear(self) -> None:
        """Forget all records and templates."""
        self._records.clear()
        self.templates.clear()

    def _expect_room(self, group: str, name: str, known: Deployment | None) -> None:
        if known is not None:
            self._expect_over(known)
            return
        limit, count = self._settings().deployment_limit, len(self._in(group))
        if count >= limit:
            raise ArmError(
                "DeploymentQuotaExceeded",
                f"Creating the deployment '{name}' would exceed the quota of '{limit}'. The "
                f"current deployment count is '{count}'. Please delete some deployments before "
                "creating a new one, or see https://aka.ms/800LimitFix for information on "
                "managing deployment limits.",
            )

    def _expect_over(self, deployment: Deployment) -> None:
        if deployment.state.is_active:
            raise ArmError(
                "DeploymentActive",
                f"Unable to edit or replace deployment '{deployment.name}': previous deployment is "
                "still active. Please see https://aka.ms/arm-deploy for usage details.",
            )

    def _template(self, request: Json) -> Json:
        if "template" in request:
            return dict(request["template"])
        link = request.get("templateLink") or {}
        name = str(link.get("id") or link.get("uri") or "")
        if not name:
            message = "A template or a template link must be given."
            raise ArmError("InvalidDeployment", message)
        template = self.templates.get(name, templates.built_in(self._settings()))
        if template is None:
            message = f"The template of link '{name}' could not be found."
            raise ArmError("InvalidContentLink", message)
        return template

    def _check(self, name: str, planned: list[Planned]) -> None:
        if not self._settings().checks_before_deploying:
            return
        for one in planned:
            if KINDS.get(one.type.lower()) is not Kind.VM:
                continue
            try:
                self._builder.check(one.name, one.body)
            except ArmError as error:
                raise ArmError(
                    "InvalidTemplateDeployment",
                    f"The template deployment '{name}' is not valid according to the validation "
                    f"procedure. The tracking id is '{self._lifecycle.new_id()}'. See inner "
                    "errors for details.",
                    details=[error.content()],
                ) from None

    def _plan(self, deployment: Deployment, due: float, happen: Callable[[float], None]) -> None:
        deployment.turn += 1
        turn = deployment.turn
        self._lifecycle.agenda.plan(due, lambda at: happen(at) if deployment.turn == turn else None)

    def _operation(self, now: float) -> Operation:
        return self._lifecycle.operations.begin(self._lifecycle.new_id(), PROVIDER, "", now)

    def _fate(self, step: Step, deployment: Deployment) -> Fate | None:
        return self._lifecycle.fates.draw(step, "deployments", name=deployment.name)

    def _in(self, group: str) -> dict[str, Deployment]:
        return self._records.setdefault(group.lower(), {})
