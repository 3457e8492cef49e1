"""The provider against the simulated EC2, over HTTP with the real SDK."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from infra.local.clouds.ec2 import Fault, FaultKind
from tests.providers.orders import BODY, DEPLOYMENT, OREGON, an_order, worker_of
from worker_manager.core.errors import CloudUnavailableError, ThrottledError
from worker_manager.providers.aws.provider import AwsProvider

if TYPE_CHECKING:
    import boto3

    from tests.providers.stages import Ec2Stage


def test_instances_and_their_volumes_carry_what_accounts_for_them(
    ec2: Ec2Stage, ec2_session: boto3.Session
) -> None:
    ec2.provider.launch(an_order(count=1))
    client = ec2_session.client("ec2", region_name=OREGON)
    (reservation,) = client.describe_instances()["Reservations"]
    (volume,) = client.describe_volumes()["Volumes"]
    for tagged in (reservation["Instances"][0], volume):
        tags = {tag["Key"]: tag["Value"] for tag in tagged["Tags"]}
        assert tags["worker-manager:deployment"] == DEPLOYMENT
        assert tags["worker-manager:pool"] == "proj/linux"
        assert tags["worker-manager:launch-config"] == "lc-6350aa384f6ab04fc4d1"
        assert tags["worker-manager:order"] == "wm-0123456789abcdef"


def test_a_machine_can_read_its_user_data(ec2: Ec2Stage, ec2_session: boto3.Session) -> None:
    (machine,) = ec2.provider.launch(an_order(count=1)).machines
    client = ec2_session.client("ec2", region_name=OREGON)
    answer = client.describe_instance_attribute(
        InstanceId=machine.key.worker_id, Attribute="userData"
    )
    told = json.loads(base64.b64decode(answer["UserData"]["Value"]))
    assert told["rootUrl"] == "https://tc.example.com"
    assert told["workerConfig"] == BODY["workerConfig"]
    assert told["motd"] == "grüße"


def test_a_machines_record_agrees_with_its_identity_document(ec2: Ec2Stage) -> None:
    (machine,) = ec2.provider.launch(an_order(count=1)).machines
    document = json.loads(ec2.cloud.identity(machine.key.worker_id)["document"])
    assert machine.identity == {name: document[name] for name in machine.identity}
    assert len(machine.identity) == 7


def test_a_list_of_more_than_a_page_takes_a_call_a_page(ec2: Ec2Stage) -> None:
    tags = {"worker-manager:deployment": DEPLOYMENT, "worker-manager:pool": "proj/linux"}
    ec2.cloud.seed(OREGON, number=2_050, tags=tags)
    keys = {seen.key for seen in ec2.provider.instances(OREGON)}
    assert len(keys) == 2_050
    assert ec2.cloud.calls_of("DescribeInstances") == 3


def test_many_bad_ids_among_good_ones_spoil_nothing(ec2: Ec2Stage) -> None:
    launched = ec2.provider.launch(an_order(count=60))
    workers = [worker_of(machine) for machine in launched.machines]
    for worker in workers[::2]:
        ec2.vanish(worker.key)
    found = ec2.provider.lookup(OREGON, workers)
    assert [found[worker.key] is None for worker in workers] == [True, False] * 30
    terminated = ec2.provider.terminate(workers)
    assert terminated.done == {worker.key for worker in workers}
    assert list(ec2.provider.instances(OREGON)) == []


def test_no_call_is_repeated_behind_our_back(ec2: Ec2Stage) -> None:
    """Throttling is for the caller to wait out, not for the SDK to hammer on."""
    ec2.refuse_always("DescribeInstances", "RequestLimitExceeded")
    with pytest.raises(ThrottledError):
        list(ec2.provider.instances(OREGON))
    assert ec2.cloud.calls_of("DescribeInstances") == 1


def test_a_call_that_hangs_is_given_up(ec2: Ec2Stage, ec2_session: boto3.Session) -> None:
    """B15: every cloud call has a deadline."""
    impatient = AwsProvider(
        provider_id="aws",
        deployment=DEPLOYMENT,
        session=ec2_session,
        read_timeout=timedelta(milliseconds=200),
    )
    ec2.cloud.faults.add(Fault(FaultKind.HANG, "RunInstances", seconds=3600))
    with pytest.raises(CloudUnavailableError) as caught:
        impatient.launch(an_order())
    assert caught.value.code == "ReadTimeoutError"
    assert len(ec2.provider.launch(an_order()).machines) == 2


def test_threads_share_a_provider(ec2: Ec2Stage) -> None:
    orders = [an_order(order_id=f"wm-{number}", count=5) for number in range(8)]
    threads = [Thread(target=ec2.provider.launch, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(ec2.provider.instances(OREGON))) == 40
