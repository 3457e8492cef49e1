"""Simulated machines on the simulated EC2, against a recorded Taskcluster."""

from __future__ import annotations

import json
import time
from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server, InstanceState, Settings, SigningKey
from infra.local.machines import MachineFleet, Rules
from infra.local.machines.assignment import Assignment, read_assignment
from infra.local.machines.hypervisor import InstanceMetadata
from infra.local.machines.machine import Phase
from infra.local.machines.worker import Outcome
from tests.infra.ec2_calls import launch
from tests.infra.taskcluster_service import SECRET, TaskclusterService, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_ec2 import EC2Client

POOL = "proj/linux"
QUICK = {
    "boot_seconds": [0, 0],
    "poll_seconds": 0.02,
    "task_seconds": 0.02,
    "retry_seconds": 0.02,
    "idle_seconds": 60,
}


@pytest.fixture
def service() -> Iterator[TaskclusterService]:
    service = TaskclusterService()
    yield service
    service.close()


@pytest.fixture
def cloud(one_ec2_server: Ec2Server, signing_key: SigningKey) -> Ec2Cloud:
    """A cloud in real time whose instances run at once."""
    one_ec2_server.cloud = Ec2Cloud(Settings(pending_seconds=0), key=signing_key)
    return one_ec2_server.cloud


@pytest.fixture
def run(
    ec2: EC2Client, service: TaskclusterService, one_ec2_server: Ec2Server
) -> Iterator[Callable[..., tuple[MachineFleet, list[str]]]]:
    """Launch instances for a pool and let machines run on them."""
    fleets: list[MachineFleet] = []

    def start(count: int = 1, **behaviour: Any) -> tuple[MachineFleet, list[str]]:
        ids = launch(ec2, count, UserData=json.dumps(user_data(service.url)))
        rules = Rules.from_document({"default": QUICK | behaviour})
        fleet = MachineFleet(one_ec2_server.url, rules=rules, poll_seconds=0.02)
        fleets.append(fleet.start())
        return fleet, ids

    yield start
    for fleet in fleets:
        fleet.stop()
        assert fleet.outcomes[Outcome.CRASHED] == 0


def user_data(root_url: str) -> dict[str, Any]:
    return {
        "rootUrl": root_url,
        "workerPoolId": POOL,
        "providerId": "aws",
        "workerGroup": "us-east-1",
        "launchConfigId": "lc-1",
        "workerConfig": {"capacity": 2},
    }


def only(fleet: MachineFleet, phase: Phase) -> bool:
    return set(fleet.phases()) == {phase}


def test_a_machine_registers_works_and_leaves_when_told(
    cloud: Ec2Cloud, service: TaskclusterService, run: Any
) -> None:
    service.script.tasks = deque([{"seconds": 0.05}])
    fleet, [instance_id] = run()
    until(lambda: service.of("completed"))
    service.script.terminate = True
    until(lambda: cloud.instance(instance_id).state is InstanceState.STOPPED)
    assert list(dict.fromkeys(service.names())) == [
        "register",
        "should-terminate",
        "claim-work",
        "completed",
        "remove",
    ]
    worker = f"{POOL}/us-east-1/{instance_id}"
    [registration] = service.of("register")
    assert registration.client_id == ""
    assert set(registration.body) == {
        "workerPoolId",
        "providerId",
        "workerGroup",
        "workerId",
        "workerIdentityProof",
        "systemBootTime",
    }
    assert registration.body["workerId"] == instance_id
    proof = registration.body["workerIdentityProof"]
    assert json.loads(proof["document"])["instanceId"] == instance_id
    assert set(proof) == {"document", "signature"}
    assert datetime.fromisoformat(registration.body["systemBootTime"]).tzinfo is not None
    asked, claimed = service.of("should-terminate")[0], service.of("claim-work")[0]
    assert asked.path == f"/api/worker-manager/v1/workers/{worker}/should-terminate"
    assert claimed.path == f"/api/queue/v1/claim-work/{POOL}"
    assert claimed.body == {"workerGroup": "us-east-1", "workerId": instance_id, "tasks": 1}
    assert asked.client_id == claimed.client_id == "worker"
    [completed] = service.of("completed")
    assert completed.path == "/api/queue/v1/task/task-1/runs/0/completed"
    assert completed.client_id == "task-1"
    [removed] = service.of("remove")
    assert removed.path == f"/api/worker-manager/v1/workers/{worker}"
    assert fleet.outcomes == {
        Outcome.REGISTERED: 1,
        Outcome.COMPLETED: 1,
        Outcome.LEFT: 1,
    }


def test_registration_is_tried_again_after_a_503_and_not_before_its_time(
    service: TaskclusterService, run: Any
) -> None:
    service.script.registrations = deque([(500, {}), (503, {"Retry-After": "0.3"})])
    run()
    until(lambda: service.of("claim-work"))
    first, second, third = service.of("register")
    assert third.at - second.at >= 0.3
    assert first.body == third.body


def test_a_refused_registration_is_final(service: TaskclusterService, run: Any) -> None:
    service.script.registrations = deque([(400, {})])
    fleet, _ = run()
    until(lambda: only(fleet, Phase.REFUSED))
    time.sleep(0.2)
    assert service.names() == ["register"]
    assert fleet.outcomes == {Outcome.REFUSED: 1}


def test_a_machine_may_never_register(service: TaskclusterService, run: Any) -> None:
    fleet, _ = run(registers=False)
    until(lambda: only(fleet, Phase.SILENT))
    assert service.names() == []


def test_a_machine_may_never_claim(service: TaskclusterService, run: Any) -> None:
    fleet, _ = run(claims=False)
    until(lambda: only(fleet, Phase.SILENT))
    time.sleep(0.1)
    assert service.names() == ["register"]


def test_a_machine_may_hang_in_its_first_task(service: TaskclusterService, run: Any) -> None:
    service.script.tasks = deque([{}, {}])
    fleet, _ = run(hangs_in_task=True)
    until(lambda: fleet.outcomes[Outcome.HUNG])
    time.sleep(0.1)
    assert service.names() == ["register", "should-terminate", "claim-work"]


def test_a_rebooted_machine_loses_its_task_and_goes_on_with_its_credentials(
    cloud: Ec2Cloud, service: TaskclusterService, run: Any
) -> None:
    service.script.tasks = deque([{"seconds": 600}])
    fleet, [instance_id] = run()
    until(lambda: only(fleet, Phase.BUSY))
    cloud.reboot("us-east-1", [instance_id])
    until(lambda: fleet.outcomes[Outcome.REBOOTED])
    before = len(service.of("claim-work"))
    until(lambda: len(service.of("claim-work")) > before)
    assert only(fleet, Phase.IDLE)
    assert len(service.of("register")) == 1
    assert service.of("claim-work")[-1].client_id == "worker"
    assert service.of("completed") == []


def test_a_rebooted_machine_that_keeps_nothing_registers_again_with_a_later_boot_time(
    cloud: Ec2Cloud, service: TaskclusterService, run: Any
) -> None:
    fleet, [instance_id] = run(keeps_credentials=False)
    until(lambda: service.of("claim-work"))
    cloud.reboot("us-east-1", [instance_id])
    until(lambda: fleet.outcomes[Outcome.REGISTERED] == 2)
    until(lambda: only(fleet, Phase.IDLE))
    first, second = (call.body for call in service.of("register"))
    assert second.pop("systemBootTime") > first.pop("systemBootTime")
    assert second == first
    assert fleet.outcomes[Outcome.REBOOTED] == 1


def test_a_machine_may_report_an_error_and_leave(
    cloud: Ec2Cloud, service: TaskclusterService, run: Any
) -> None:
    _, [instance_id] = run(reports_error=True)
    until(lambda: cloud.instance(instance_id).state is InstanceState.STOPPED)
    assert service.names() == ["register", "report-error", "remove"]
    assert service.of("report-error")[0].body["workerId"] == instance_id


@pytest.mark.parametrize("outcome", ["failed", "exception"])
def test_a_task_may_end_badly(service: TaskclusterService, run: Any, outcome: str) -> None:
    service.script.tasks = deque([{}])
    run(task_outcome=outcome)
    until(lambda: service.of(outcome))
    assert service.of("completed") == []


def test_a_long_task_is_reclaimed_halfway_and_reported_with_the_new_credentials(
    service: TaskclusterService, run: Any
) -> None:
    service.script.tasks = deque([{"seconds": 0.3}])
    run(reclaim_seconds=0.2)
    until(lambda: service.of("completed"))
    [claimed] = [c for c in service.of("claim-work")][:1]
    [reclaimed], [completed] = service.of("reclaim"), service.of("completed")
    assert reclaimed.client_id == "task-1"
    assert reclaimed.at - claimed.at >= 0.15
    assert completed.client_id == "task-reclaimed"


def test_a_machine_runs_as_many_tasks_as_it_has_capacity_and_finishes_them_before_it_leaves(
    service: TaskclusterService, run: Any
) -> None:
    service.script.worker_config = {"capacity": 2}
    service.script.tasks = deque([{"seconds": 0.1}] * 3)
    service.script.terminate_after_claims = True
    run()
    until(lambda: service.of("remove"))
    names = service.names()
    assert names.count("completed") == 2
    assert names.index("remove") > max(i for i, n in enumerate(names) if n == "completed")
    assert service.of("claim-work")[0].body["tasks"] == 2


def test_a_machine_that_asks_only_when_idle_asks_after_its_idle_time(
    service: TaskclusterService, run: Any
) -> None:
    service.script.worker_config = {"shutdown": {"afterIdleSeconds": 0.3}}
    service.script.terminate = True
    run(asks_every_pass=False, idle_seconds=None)
    until(lambda: service.of("remove"))
    [asked] = service.of("should-terminate")
    assert asked.at - service.of("claim-work")[0].at >= 0.25


def test_credentials_are_renewed_before_they_expire(service: TaskclusterService, run: Any) -> None:
    service.script.lifetime = timedelta(seconds=0.4)
    fleet, [instance_id] = run()
    until(lambda: service.of("reregister"))
    service.script.lifetime = timedelta(hours=1)
    renewed = service.of("reregister")[0]
    assert renewed.body == {
        "workerPoolId": POOL,
        "workerGroup": "us-east-1",
        "workerId": instance_id,
        "secret": SECRET,
    }
    until(lambda: service.of("claim-work")[-1].client_id == "worker-renewed")
    assert fleet.outcomes[Outcome.LEFT] == 0


def test_a_machine_whose_credentials_are_not_renewed_leaves(
    service: TaskclusterService, run: Any
) -> None:
    service.script.lifetime = timedelta(seconds=0.2)
    service.script.reregisters = False
    fleet, _ = run()
    until(lambda: fleet.outcomes[Outcome.LEFT])
    assert service.names()[-2:] == ["reregister", "remove"]


def test_a_machine_stops_at_once_when_its_instance_goes(
    ec2: EC2Client, service: TaskclusterService, run: Any
) -> None:
    service.script.tasks = deque([{"seconds": 60}])
    fleet, ids = run(2)
    until(lambda: service.of("claim-work") and Phase.BUSY in fleet.phases())
    ec2.terminate_instances(InstanceIds=ids)
    until(lambda: not fleet.phases())
    time.sleep(0.1)
    calls = len(service.calls)
    time.sleep(0.2)
    assert len(service.calls) == calls
    assert service.of("completed") == []


def test_a_restarted_instance_boots_a_machine_again(
    ec2: EC2Client, cloud: Ec2Cloud, service: TaskclusterService, run: Any
) -> None:
    cloud.change_settings(stopping_seconds=0)
    fleet, ids = run()
    until(lambda: service.of("claim-work"))
    ec2.stop_instances(InstanceIds=ids)
    until(lambda: not fleet.phases())
    ec2.start_instances(InstanceIds=ids)
    until(lambda: len(service.of("register")) == 2)


def test_instances_without_a_workers_user_data_stay_silent(
    ec2: EC2Client, service: TaskclusterService, run: Any
) -> None:
    fleet, _ = run(1, registers=False)
    launch(ec2, UserData="#!/bin/sh")
    until(lambda: fleet.phases()[Phase.SILENT] == 2)
    assert service.names() == []


def test_sixty_machines_are_carried_by_one_thread(service: TaskclusterService, run: Any) -> None:
    service.script.tasks = deque([{}] * 120)
    fleet, _ = run(60, poll_seconds=0.5)
    until(lambda: fleet.outcomes[Outcome.COMPLETED] == 120)
    until(lambda: fleet.outcomes[Outcome.REGISTERED] == 60)


def test_rules_choose_machines_by_what_they_are_and_by_share() -> None:
    rules = Rules.from_document(
        {
            "default": {"task_seconds": 9},
            "rules": [
                {"image_id": "ami-dead", "overrides": {"registers": False}},
                {"launch_config_id": "lc-2", "share": 0.25, "overrides": {"claims": False}},
            ],
        }
    )

    def instance(number: int, image_id: str = "ami-1") -> InstanceMetadata:
        return InstanceMetadata(f"i-{number}", image_id, "m5.large", None)

    def assignment(launch_config_id: str) -> Assignment:
        given = user_data("http://localhost") | {"launchConfigId": launch_config_id}
        read = read_assignment(json.dumps(given))
        assert read is not None
        return read

    assert not rules.behaviour_of(instance(1, "ami-dead"), assignment("lc-1")).registers
    assert rules.behaviour_of(instance(1), assignment("lc-1")) == rules.default
    assert rules.default.task_seconds == 9
    lots = [rules.behaviour_of(instance(n), assignment("lc-2")).claims for n in range(400)]
    assert 60 <= lots.count(False) <= 140
    assert lots == [rules.behaviour_of(instance(n), assignment("lc-2")).claims for n in range(400)]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rootUrl": "x"}', "null", "#!/bin/sh"])
def test_user_data_that_is_not_a_workers_is_no_assignment(text: str) -> None:
    assert read_assignment(text) is None
