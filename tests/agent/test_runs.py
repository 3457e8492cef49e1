"""Runs from the request to the worker that is seen again: registry, agents and a rack, for real."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.racks.machine import Condition
from infra.local.racks.rack import SECRETS
from tests.agent.stage import DROPPED, QUICK, Living, Stage, a_config, a_stage, is_done
from tests.api.registry_world import POOL
from tests.api.world import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from infra.local.racks.rack import Rack
    from worker_manager.store.tables import Tables
    from worker_manager_agent.config import Config

LADDER = ("ssh", "redfish-reset", "pdu")
LEASE = timedelta(seconds=61)
AGAIN = timedelta(seconds=30)
"""Calls of a worker that is waited for are noted three times a minute."""


@pytest.fixture
def made(tables: Tables, rack: Rack) -> Iterator[tuple[Stage, str]]:
    with a_stage(tables, rack) as made:
        yield made


@pytest.fixture
def stage(made: tuple[Stage, str]) -> Stage:
    return made[0]


@pytest.fixture
def config(made: tuple[Stage, str], tmp_path: Path) -> Config:
    _, root_url = made
    return a_config(inventory(made[0].rack, tmp_path), root_url)


@pytest.fixture
def start(config: Config) -> Iterator[Callable[[], Living]]:
    agents: list[Living] = []

    def start(**settings: Any) -> Living:
        changed = config.settings.model_copy(update=settings)
        agents.append(Living(replace(config, settings=changed)))
        return agents[-1]

    yield start
    for agent in agents:
        agent.kill()


def inventory(rack: Rack, folder: Path, ladder: tuple[str, ...] = LADDER) -> Path:
    path = rack.write_files(folder, worker_group="rack-1", look=QUICK, ladder=ladder)
    text = path.read_text()
    path.write_text(text.replace('"known_hosts" }', '"known_hosts", timeout_seconds = 0.2 }'))
    return path


def tried(run: Any) -> list[tuple[str, str]]:
    return [(each["method"], each.get("result", "open")) for each in run["attempts"]]


def test_a_machine_that_is_up_is_rebooted_by_ssh_and_done_when_its_worker_is_seen(
    stage: Stage, start: Callable[[], Living]
) -> None:
    stage.see()
    stage.ask()
    agent = start()
    run = stage.wait(is_done)
    assert tried(run) == [("ssh", "ok")]
    assert run["state"] == "running"
    stage.clock.ahead += AGAIN
    stage.see()
    assert stage.settled()["state"] == "succeeded"
    assert stage.machine.restarts == {"ssh": 1}
    agent.stop()


def test_a_machine_that_hangs_is_brought_back_by_the_second_rung(
    stage: Stage, start: Callable[[], Living]
) -> None:
    stage.rack.do(stage.machine.hang())
    stage.ask(reason="it hangs")
    start()
    run = stage.wait(is_done)
    assert tried(run) == [("ssh", "error"), ("redfish-reset", "ok")]
    assert "went down and came up" in run["attempts"][1]["message"]
    stage.clock.ahead += AGAIN
    stage.see()
    assert stage.settled()["state"] == "succeeded"
    assert stage.machine.restarts == {"redfish-reset": 1}


def test_a_machine_that_nothing_brings_back_fails_with_all_that_was_tried(
    stage: Stage, start: Callable[[], Living]
) -> None:
    stage.machine.is_dead = True
    stage.rack.do(stage.machine.hang())
    stage.ask()
    start()
    run = stage.wait(is_done)
    assert run["state"] == "failed"
    assert tried(run) == [("ssh", "error"), ("redfish-reset", "no-change"), ("pdu", "no-change")]
    assert all(rung in run["message"] for rung in LADDER)


def test_a_machine_that_is_not_listed_and_an_operation_that_is_not_known_fail(
    stage: Stage, start: Callable[[], Living], config: Config
) -> None:
    config.hosts.clear()
    stage.ask()
    start()
    run = stage.wait(is_done)
    assert run["state"] == "failed"
    assert "is for no machine" in run["message"]


@pytest.mark.parametrize(
    ("when", "attempts", "restarts"),
    [
        ("before begin 1", [("ssh", "error"), ("redfish-reset", "ok")], {"redfish-reset": 1}),
        ("after begin 1", [("ssh", "unknown"), ("redfish-reset", "ok")], {"redfish-reset": 1}),
        ("after end 1", [("ssh", "error"), ("redfish-reset", "ok")], {"redfish-reset": 1}),
        (
            "after begin 2",
            [("ssh", "error"), ("redfish-reset", "unknown"), ("pdu", "ok")],
            {"pdu": 1},
        ),
        ("doing", [("ssh", "error"), ("redfish-reset", "unknown")], {"redfish-reset": 1}),
        ("after end 2", [("ssh", "error"), ("redfish-reset", "ok")], {"redfish-reset": 1}),
        ("after resolve", [("ssh", "error"), ("redfish-reset", "ok")], {"redfish-reset": 1}),
    ],
)
def test_an_agent_killed_at_any_step_leaves_one_outcome_and_no_second_power_cycle(
    stage: Stage,
    start: Callable[[], Living],
    when: str,
    attempts: list[tuple[str, str]],
    restarts: dict[str, int],
) -> None:
    stage.rack.do(stage.machine.hang())
    stage.ask()
    killed: list[str] = []
    first: list[Living] = []

    def kill() -> str:
        first[0].kill()
        killed.append(when)
        return DROPPED

    async def kill_when_it_boots(condition: Condition) -> None:
        if condition is Condition.BOOTING:
            kill()

    moment, _, what = when.partition(" ")
    if moment == "doing":
        stage.machine.changed.append(kill_when_it_boots)
    else:
        (stage.before if moment == "before" else stage.after)[what] = kill
    with stage.paused():
        first.append(start())
    stage.wait(lambda _: killed)
    stage.machine.changed[:] = stage.machine.changed[:1]
    stage.clock.ahead += LEASE
    start()
    run = stage.wait(is_done)
    assert tried(run) == attempts
    assert stage.machine.restarts == restarts
    assert stage.machine.condition is Condition.UP
    stage.clock.ahead += AGAIN
    stage.see()
    run = stage.settled()
    assert run["state"] == "succeeded"
    assert any("taken up by dc1" in line["text"] for line in run["log"])


def test_a_lease_that_ends_mid_run_stops_the_first_agent_and_the_second_only_looks(
    stage: Stage, start: Callable[[], Living]
) -> None:
    stage.rack.do(stage.machine.hang())
    stage.ask()
    agents: list[Living] = []

    def lose() -> None:
        """The first one's word is held up for longer than a lease."""
        stage.clock.ahead += LEASE
        agents.append(start())
        stage.wait(lambda run: run["attempts"][1].get("result") == "unknown")

    stage.before["end 2"] = lose
    with stage.paused():
        agents.append(start())
    run = stage.wait(is_done)
    assert tried(run) == [("ssh", "error"), ("redfish-reset", "unknown")]
    assert stage.machine.restarts == {"redfish-reset": 1}
    assert len(agents) == 2


def test_two_agents_for_one_host_reboot_it_once(stage: Stage, start: Callable[[], Living]) -> None:
    stage.see()
    stage.ask()
    start(), start()
    assert tried(stage.wait(is_done)) == [("ssh", "ok")]
    assert stage.machine.restarts == {"ssh": 1}


def test_a_host_that_comes_back_by_itself_is_left_alone(
    stage: Stage, start: Callable[[], Living]
) -> None:
    stage.rack.do(stage.machine.hang())
    stage.see(ago=timedelta(hours=3))
    stage.ask()

    def come_back() -> None:
        stage.rack.do(stage.machine.come_up())
        stage.clock.ahead += AGAIN
        stage.see()

    stage.before["end 1"] = come_back
    start()
    run = stage.wait(is_done)
    assert run["state"] == "succeeded"
    assert tried(run) == [("ssh", "error")]
    assert not stage.machine.restarts


def test_a_cancelled_run_goes_no_further(stage: Stage, start: Callable[[], Living]) -> None:
    stage.rack.do(stage.machine.hang())
    stage.ask()
    stage.before["end 1"] = lambda: stage.api.runs.cancel(
        stage.run()["runId"], by="somebody", now=stage.clock()
    )
    start()
    run = stage.wait(is_done)
    assert run["state"] == "cancelled"
    assert not stage.machine.restarts


def test_an_agent_that_is_told_to_stop_begins_no_further_rung(
    stage: Stage, start: Callable[..., Living]
) -> None:
    stage.rack.do(stage.machine.hang())
    stage.ask()
    agents: list[Living] = []
    with stage.paused():
        agents.append(start(stop_seconds=5.0))
        stage.before["end 1"] = agents[0].ask_to_stop
    agents[0].join()
    assert tried(stage.run()) == [("ssh", "error")]
    assert not stage.machine.restarts
    stage.clock.ahead += LEASE
    start()
    assert tried(stage.wait(is_done)) == [("ssh", "error"), ("redfish-reset", "ok")]


def test_a_machine_is_not_left_without_power_by_an_agent_that_was_killed(
    made: tuple[Stage, str], tmp_path: Path
) -> None:
    stage, root_url = made
    config = a_config(inventory(stage.rack, tmp_path, ("pdu-off-on", "pdu")), root_url)
    agent = a_program(tmp_path, root_url)

    async def kill(condition: Condition) -> None:
        if condition is Condition.OFF:
            commands.append(Path(f"/proc/{agent.pid}/cmdline").read_text())
            agent.kill()

    commands: list[str] = []
    stage.machine.changed.append(kill)
    stage.ask()
    _, logged = agent.communicate(timeout=30)
    stage.machine.changed.remove(kill)
    assert agent.returncode == -signal.SIGKILL
    assert stage.machine.condition is Condition.OFF
    stage.clock.ahead += LEASE
    second = Living(config)
    try:
        assert tried(stage.wait(is_done)) == [("pdu-off-on", "unknown")]
    finally:
        second.kill()
    assert stage.machine.restarts == {"pdu-off": 1, "pdu-on": 1}
    assert "attempt 1: pdu-off-on of m-1" in logged
    assert not [secret for secret in (*SECRETS, TOKEN) if secret in logged + commands[0]]


@pytest.mark.parametrize("queues", ["proj/*", "proj-x/x*", "proj-x/build"])
def test_a_machine_of_somebody_elses_task_queue_is_not_touched(
    stage: Stage, start: Callable[..., Living], queues: str
) -> None:
    stage.ask()
    start(task_queues=(queues,))
    run = stage.wait(is_done)
    assert (run["state"], tried(run)) == ("failed", [])
    assert "is for no machine" in run["message"]
    assert stage.machine.restarts == {}


def a_program(folder: Path, root_url: str) -> subprocess.Popen[str]:
    """The agent as a process of its own."""
    lines = {"root_url": root_url, "agent_id": "dc1", "inventory": "inventory.toml"}
    text = "".join(f'{name} = "{value}"\n' for name, value in lines.items())
    (folder / "agent.toml").write_text(text + f'poll_seconds = 0.05\ntask_queues = ["{POOL}"]\n')
    return subprocess.Popen(
        [sys.executable, "-m", "worker_manager_agent", "--config", str(folder / "agent.toml")],
        env={"TASKCLUSTER_CLIENT_ID": "test/dc1", "TASKCLUSTER_ACCESS_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
    )
