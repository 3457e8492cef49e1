"""Every call of a visit has the time that is left of it, and none waits for a token."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.clouds.arm import Fate, Outcome, Step
from tests.providers.orders import DEPLOYMENT, worker_of
from worker_manager.core.errors import BadCredentialsError
from worker_manager.core.model import State
from worker_manager.providers.visit import Visit, Visits

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage

LATE = timedelta(seconds=15)
LEFT_SECONDS = 7
"""Of 25, less 3 to connect."""


@pytest.fixture
def given(stage_of_both: AzureStage, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Methods and paths, with the seconds for their answers, in visits that began long ago."""
    begin = Visits.begin
    transport = stage_of_both.provider._arm._options["transport"]
    send = transport.send
    calls: list[tuple[str, float]] = []

    def begin_late(visits: Visits) -> Visit:
        visit = begin(visits)
        visit._began -= LATE.total_seconds()
        return visit

    def record(request: Any, **options: Any) -> Any:
        calls.append((f"{request.method} {request.url}", options["read_timeout"]))
        return send(request, **options)

    monkeypatch.setattr(Visits, "begin", begin_late)
    monkeypatch.setattr(transport, "send", record)
    return calls


def test_every_call_of_a_visit_has_the_time_that_is_left(
    stage_of_both: AzureStage, given: list[tuple[str, float]]
) -> None:
    stage = stage_of_both
    stage.cloud.estate.groups.pop("rg-templates")
    sweeper = stage._provider(stage.url, DEPLOYMENT)
    for count in (1, 5):
        stage.cloud.fates.add(Fate(Step.CREATE, Outcome.FAIL, kind="virtualMachines"))
        order = stage.order(order_id=f"wm-{count}", count=count, manager={"publicIp": True})
        workers = [worker_of(one) for one in stage.provider.launch(order).machines]
        stage.provider.lookup(stage.location, [*workers[1:], replace(workers[0], identity={})])
        stage.provider.follow(stage.location, workers)
        stage.provider.terminate([replace(one, state=State.STOPPING) for one in workers[:1]])
        for worker in workers[1:]:
            stage.vanish(worker.key)
        found = list(sweeper.leftovers(stage.location, {"rg-templates"}))
        stage.provider.remove(stage.location, found)
    late = [call for call in given if not 0 < call[1] <= LEFT_SECONDS]
    assert late == []
    assert len(given) > 25


def test_a_visit_begins_with_a_token(azure: AzureStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time of its calls would be that of signing in, too."""

    def refuse(*scopes: str, **options: Any) -> None:
        raise BadCredentialsError("no")

    monkeypatch.setattr(azure.provider._arm.credential, "get_token", refuse)
    with pytest.raises(BadCredentialsError):
        azure.provider.terminate([azure.absent])
    assert not azure.cloud.calls
