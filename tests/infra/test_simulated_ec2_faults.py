"""Throttling, faults on purpose and the control side of the simulated EC2."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from infra.local.clouds.ec2 import Ec2Cloud, Ec2Server, Fault, FaultKind, Rate
from infra.local.clouds.ec2.buckets import REQUEST_RATES, RESOURCE_RATES
from tests.infra.ec2_calls import IMAGE, launch, listed, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mypy_boto3_ec2 import EC2Client

    from tests.infra.virtual_clock import VirtualClock


def get(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.loads(answer.read())


def post(url: str, document: Any) -> Any:
    request = urllib.request.Request(url, data=json.dumps(document).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def test_launches_are_throttled_by_request_at_the_published_rate(
    cloud: Ec2Cloud, ec2: EC2Client, clock: VirtualClock
) -> None:
    assert REQUEST_RATES["RunInstances"] == Rate(5, 2)
    cloud.buckets.enable()
    for _ in range(5):
        launch(ec2)
    code, message, status = refused(lambda: launch(ec2))
    assert (code, message, status) == ("RequestLimitExceeded", "Request limit exceeded.", 503)
    clock.advance(1)
    launch(ec2)
    launch(ec2)
    assert refused(lambda: launch(ec2))[0] == "RequestLimitExceeded"
    assert len(cloud.instances()) == 7


def test_launches_are_throttled_by_instances_at_the_published_rate(
    cloud: Ec2Cloud, ec2: EC2Client, clock: VirtualClock
) -> None:
    assert RESOURCE_RATES["RunInstances"] == Rate(1000, 2)
    cloud.buckets.enable()
    launch(ec2, 600)
    assert refused(lambda: launch(ec2, 600))[0] == "RequestLimitExceeded"
    launch(ec2, 400)
    clock.advance(10)
    assert len(launch(ec2, 20)) == 20
    assert refused(lambda: launch(ec2, 1))[0] == "RequestLimitExceeded"


def test_buckets_are_separate_for_regions_and_for_lists_without_filter(
    cloud: Ec2Cloud, ec2: EC2Client, ec2_in: Callable[[str], EC2Client]
) -> None:
    cloud.buckets.enable(
        {"DescribeInstances:unfiltered": Rate(1, 0), "DescribeInstances": Rate(2, 0)}
    )
    listed(ec2)
    assert refused(lambda: listed(ec2))[0] == "RequestLimitExceeded"
    listed(ec2, MaxResults=5)
    listed(ec2, Filters=[{"Name": "tag-key", "Values": ["x"]}])
    assert refused(lambda: listed(ec2, MaxResults=5))[0] == "RequestLimitExceeded"
    listed(ec2_in("us-west-2"))
    cloud.buckets.disable()
    listed(ec2)


def test_a_repeated_token_pays_for_the_request_only(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.buckets.enable({"RunInstances:resources": Rate(3, 0)})
    assert launch(ec2, 3, ClientToken="t") == launch(ec2, 3, ClientToken="t")


@pytest.mark.parametrize(
    ("code", "status"),
    [("UnauthorizedOperation", 403), ("InvalidParameterValue", 400), ("InternalError", 500)],
)
def test_a_refusal_can_be_ordered_for_one_image_in_one_region(
    cloud: Ec2Cloud, ec2: EC2Client, ec2_in: Callable[[str], EC2Client], code: str, status: int
) -> None:
    cloud.faults.add(
        Fault(
            FaultKind.ERROR,
            action="RunInstances",
            region="us-east-1",
            image_id="ami-0cafe",
            code=code,
            message="as ordered",
            times=None,
        )
    )
    for _ in range(2):
        refusal = refused(lambda: launch(ec2, ImageId="ami-0cafe"))
        assert refusal == (code, "as ordered", status)
    assert launch(ec2)
    assert launch(ec2_in("us-west-2"), ImageId="ami-0cafe")
    cloud.faults.clear()
    assert launch(ec2, ImageId="ami-0cafe")


def test_a_fault_happens_as_often_as_its_probability_says(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.faults.add(Fault(FaultKind.ERROR, times=None, probability=0.5))
    outcomes = []
    for _ in range(40):
        before = sum(cloud.refusals.values())
        with contextlib.suppress(ec2.exceptions.ClientError):
            ec2.describe_regions()
        outcomes.append(sum(cloud.refusals.values()) - before)
    assert 10 <= sum(outcomes) <= 30


def test_a_lost_response_leaves_the_instance_and_the_token_finds_it(
    cloud: Ec2Cloud, ec2: EC2Client
) -> None:
    cloud.faults.add(Fault(FaultKind.LOST, action="RunInstances"))
    with pytest.raises(ConnectionClosedError):
        launch(ec2, 2, ClientToken="t")
    made = [i.instance_id for i in cloud.instances()]
    assert len(made) == 2
    assert launch(ec2, 2, ClientToken="t") == made


def test_a_dropped_call_did_nothing(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.faults.add(Fault(FaultKind.DROP, action="RunInstances"))
    with pytest.raises(ConnectionClosedError):
        launch(ec2)
    assert cloud.instances() == []
    assert cloud.calls_of("RunInstances") == 1


def test_a_hanging_call_is_given_up_by_the_client(
    cloud: Ec2Cloud, one_ec2_server: Ec2Server
) -> None:
    cloud.faults.add(Fault(FaultKind.HANG, seconds=3600))
    impatient = boto3.client(
        "ec2",
        region_name="us-east-1",
        endpoint_url=one_ec2_server.url,
        aws_access_key_id="AKIDSIMULATED",
        aws_secret_access_key="simulated",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=0.1),
    )
    with pytest.raises(ReadTimeoutError):
        launch(impatient)
    assert cloud.instances() == []
    impatient.close()


def test_every_call_takes_its_latency(
    cloud: Ec2Cloud, ec2: EC2Client, one_ec2_server: Ec2Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(one_ec2_server, "sleep", slept.append)
    cloud.latency_seconds.update({"*": 0.05, "RunInstances": 2.0})
    launch(ec2)
    listed(ec2)
    assert slept == [2.0, 0.05]


def test_unknown_actions_and_unsigned_calls_are_refused(
    cloud: Ec2Cloud, one_ec2_server: Ec2Server, ec2: EC2Client
) -> None:
    assert cloud.instances() == []
    assert refused(ec2.describe_vpcs)[0] == "InvalidAction"
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(f"{one_ec2_server.url}/", {})
    assert caught.value.code == 401
    caught.value.close()


def test_a_machine_reads_its_user_data_and_a_signed_identity(
    cloud: Ec2Cloud, ec2: EC2Client, one_ec2_server: Ec2Server
) -> None:
    instance = ec2.run_instances(
        ImageId=IMAGE, InstanceType="m5.large", MinCount=1, MaxCount=1, UserData="for me"
    )
    [shown] = instance["Instances"]
    url = one_ec2_server.url
    [powered] = get(f"{url}/_machines")
    assert powered == {"instance_id": shown["InstanceId"], "state": "pending", "reboots": 0}
    assert get(f"{url}/_machines/{shown['InstanceId']}")["user_data"] == "for me"
    proof = get(f"{url}/_machines/{shown['InstanceId']}/identity")
    with urllib.request.urlopen(f"{url}/_control/public-key") as answer:
        pem = answer.read()
    assert pem.decode() == cloud.signing_key().public_pem()
    key = serialization.load_pem_public_key(pem)
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(
        base64.b64decode(proof["signature"]),
        proof["document"].encode(),
        padding.PKCS1v15(),
        hashes.SHA256(),
    )
    document = json.loads(proof["document"])
    assert document["instanceId"] == shown["InstanceId"]
    assert document["privateIp"] == shown["PrivateIpAddress"]
    assert document["accountId"] == instance["OwnerId"]
    assert document["availabilityZone"] == shown["Placement"]["AvailabilityZone"]
    assert set(document) >= {
        "architecture",
        "billingProducts",
        "devpayProductCodes",
        "imageId",
        "instanceType",
        "kernelId",
        "pendingTime",
        "ramdiskId",
        "region",
        "version",
    }
    post(f"{url}/_machines/{shown['InstanceId']}/shutdown", {})
    assert get(f"{url}/_machines") == []


def test_everything_can_be_set_over_http(
    cloud: Ec2Cloud, ec2: EC2Client, one_ec2_server: Ec2Server
) -> None:
    control = f"{one_ec2_server.url}/_control"
    answer = post(
        control,
        {
            "settings": {"pending_seconds": 0},
            "capacity": [{"place": "us-east-1", "instance_type": "c5.large", "count": 0}],
            "quotas": [{"region": "us-east-1", "quota": "spot", "limit": 0}],
            "faults": [{"kind": "error", "action": "StopInstances", "code": "InternalError"}],
            "bad_images": ["ami-0bad"],
            "latency": {"DescribeVolumes": 0.0},
            "buckets": {"enabled": True, "rates": {"DescribeRegions": [0, 0]}},
            "seed": [{"region": "us-east-1", "number": 3, "tags": {"Name": "seeded"}}],
        },
    )
    seeded = answer["seed"]
    assert len(seeded) == 3
    spot: Any = {"InstanceMarketOptions": {"MarketType": "spot"}}
    for call, code in (
        (lambda: launch(ec2, InstanceType="c5.large"), "InsufficientInstanceCapacity"),
        (lambda: launch(ec2, **spot), "MaxSpotInstanceCountExceeded"),
        (lambda: launch(ec2, ImageId="ami-0bad"), "InvalidAMIID.NotFound"),
        (lambda: ec2.stop_instances(InstanceIds=seeded), "InternalError"),
        (ec2.describe_regions, "RequestLimitExceeded"),
    ):
        assert refused(call)[0] == code
    launch(ec2)
    post(control, {"interrupt": seeded[:1], "forget": seeded[1:2]})
    state = get(f"{control}/state")
    assert state["instances"] == {"us-east-1": {"shutting-down": 1, "running": 2}}
    assert state["calls"]["RunInstances"] == {"us-east-1": 4}
    assert state["refusals"]["InternalError"] == {"us-east-1": 1}
    assert [i["tags"] for i in get(f"{control}/instances")][:1] == [{"Name": "seeded"}]
    lifted = {
        "capacity": [{"place": "us-east-1", "instance_type": "c5.large", "count": None}],
        "quotas": [{"region": "us-east-1", "quota": "spot", "limit": None}],
        "buckets": {"enabled": False},
        "faults": [],
    }
    post(control, {"reset": "counts", **lifted})
    launch(ec2, InstanceType="c5.large", **spot)
    assert get(f"{control}/state")["calls"] == {"RunInstances": {"us-east-1": 1}}
    post(control, {"reset": "all"})
    assert cloud.instances() == []


@pytest.mark.parametrize(
    ("path", "document", "status"),
    [
        ("/_control", {"colour": "red"}, 400),
        ("/_control", {"capacity": [{"place": "us-east-1"}]}, 400),
        ("/_control", {"settings": {"colour": "red"}}, 400),
        ("/_machines/i-0/shutdown", {}, 404),
        ("/_machines", {}, 404),
        ("/elsewhere", {}, 404),
    ],
)
def test_senseless_control_calls_are_refused(
    cloud: Ec2Cloud, one_ec2_server: Ec2Server, path: str, document: Any, status: int
) -> None:
    assert cloud.instances() == []
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(f"{one_ec2_server.url}{path}", document)
    assert caught.value.code == status
    caught.value.close()


def test_it_runs_alone_as_a_process(tmp_path: Path) -> None:
    config = tmp_path / "cloud.json"
    config.write_text(
        json.dumps({"seed": [{"region": "us-west-2", "number": 2, "tags": {"Name": "x"}}]})
    )
    arguments = [sys.executable, "-m", "infra.local.clouds.ec2", "--config", str(config)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert get(f"{url}/_control/state")["instances"] == {"us-west-2": {"running": 2}}
        process.terminate()
        assert process.wait(timeout=60) == 0


def test_calls_that_hang_do_not_keep_the_server_from_closing() -> None:
    cloud = Ec2Cloud()
    cloud.faults.add(Fault(FaultKind.HANG, seconds=3600))
    scope = "Credential=AKID/20261201/us-east-1/ec2/aws4_request"
    head = f"POST / HTTP/1.1\r\nAuthorization: {scope}\r\nContent-Length: 22\r\n\r\n"
    with Ec2Server(cloud) as server:
        host, port = server.url.removeprefix("http://").split(":")
        caller = socket.create_connection((host, int(port)))
        caller.sendall(head.encode() + b"Action=DescribeRegions")
        while not cloud.calls_of("DescribeRegions"):
            time.sleep(0.01)
    with caller:
        caller.settimeout(60)
        assert caller.recv(100) == b""
