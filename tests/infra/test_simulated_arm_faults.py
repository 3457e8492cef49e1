"""Shortages, quotas, throttling, faults, identity and the control side of the simulated Azure."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import HttpResponseError, ServiceResponseError
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import NameOID

from infra.local.clouds.arm import ArmFault, Kind, Power
from infra.local.clouds.arm.resources import cores_of
from infra.local.clouds.buckets import Rate
from infra.local.clouds.capacity import CapacityScope
from infra.local.clouds.faults import FaultKind
from tests.infra.arm_calls import GROUP, SUBSCRIPTION, Arm, machine, refused

if TYPE_CHECKING:
    from pathlib import Path

VM = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/vm-1"


def read(url: str, **headers: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.read()


def get(url: str, **headers: str) -> Any:
    return json.loads(read(url, **headers))


def post(url: str, document: Any) -> Any:
    request = urllib.request.Request(url, data=json.dumps(document).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def test_a_size_that_is_out_is_refused_at_once_where_it_is_out(arm: Arm) -> None:
    arm.cloud.capacity[CapacityScope("eastus", "Standard_D4s_v5", spot=True)] = 1
    arm.put(priority="Spot")
    assert refused(lambda: arm.put("vm-2", priority="Spot")) == (409, "SkuNotAvailable")
    arm.put("vm-3")
    arm.put("vm-4", priority="Spot", location="westus")
    arm.clock.advance(1)
    assert arm.statuses()[-1] == "PowerState/running"
    arm.delete()
    arm.clock.advance(1)
    arm.put("vm-2", priority="Spot")


@pytest.mark.parametrize("code", ["AllocationFailed", "ZonalAllocationFailed"])
def test_other_shortages_let_the_creation_fail_later(arm: Arm, code: str) -> None:
    arm.cloud.change_settings(no_capacity_code=code)
    arm.cloud.capacity[CapacityScope("eastus")] = 0
    operation = arm.send("PUT", VM, machine()).headers["Azure-AsyncOperation"]
    arm.clock.advance(1)
    ended = arm.send("GET", operation).body
    assert (ended["status"], ended["error"]["code"]) == ("Failed", code)
    assert arm.statuses() == [f"ProvisioningState/failed/{code}"]


@pytest.mark.parametrize("code", ["OperationNotAllowed", "QuotaExceeded"])
def test_cores_have_a_quota_by_location(arm: Arm, code: str) -> None:
    arm.cloud.change_settings(quota_code=code)
    arm.cloud.quotas["eastus", False] = 6
    arm.put()
    with pytest.raises(HttpResponseError) as caught:
        arm.put("vm-2")
    assert caught.value.error is not None
    assert caught.value.error.code == code
    words = "Current Limit: 6, Current Usage: 4, Additional Required: 4"
    assert words in str(caught.value.error.message)
    arm.put("vm-2", size="Standard_D2s_v5")
    arm.put("vm-3", priority="Spot")


def test_cores_follow_from_the_name_of_a_size() -> None:
    sizes = ("Standard_D32ads_v5", "Standard_F2", "Standard_NC4as_T4_v3", "Basic")
    assert [cores_of(size) for size in sizes] == [32, 2, 4, 2]


def test_the_subscription_is_throttled_at_the_published_rate(arm: Arm) -> None:
    arm.cloud.buckets.enable({"reads": Rate(2, 0.5)})
    ok = arm.send("GET", GROUP)
    assert ok.headers["x-ms-ratelimit-remaining-subscription-reads"] == "249"
    arm.send("GET", GROUP)
    throttled = arm.send("GET", GROUP)
    assert (throttled.status, throttled.headers["Retry-After"]) == (429, "2")
    assert throttled.body["error"]["code"] == "SubscriptionRequestsThrottled"
    assert throttled.headers["x-ms-ratelimit-remaining-subscription-reads"] == "0"
    arm.put()
    arm.clock.advance(2)
    assert arm.send("GET", GROUP).status == 200


def test_compute_can_be_throttled_by_action(arm: Arm) -> None:
    arm.cloud.buckets.enable({"virtualMachines.put": Rate(1, 0)})
    made = arm.send("PUT", VM, machine())
    assert made.headers["x-ms-ratelimit-remaining-resource"] == "Microsoft.Compute/PutVM3Min;239"
    throttled = arm.send("PUT", VM, machine())
    assert (throttled.status, throttled.headers["Retry-After"]) == (429, "3600")
    assert throttled.body["error"]["details"][0]["code"] == "TooManyRequests"
    arm.delete()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"code": "AuthorizationFailed"}, (403, "AuthorizationFailed")),
        ({"code": "LinkedAuthorizationFailed", "name": "vm-1"}, (403, "LinkedAuthorizationFailed")),
        ({"code": "ExpiredAuthenticationToken"}, (401, "ExpiredAuthenticationToken")),
        ({"code": "InternalServerError", "location": "eastus"}, (500, "InternalServerError")),
        ({"code": "Odd", "status": 418, "instance_type": "Standard_D4s_v5"}, (418, "Odd")),
    ],
)
def test_refusals_can_be_ordered(
    arm: Arm, fault: dict[str, Any], expected: tuple[int, str]
) -> None:
    arm.cloud.faults.add(ArmFault(FaultKind.ERROR, "virtualMachines.put", **fault, retry_after=7))
    with pytest.raises(HttpResponseError) as caught:
        arm.put()
    assert caught.value.error is not None
    assert (caught.value.status_code, caught.value.error.code) == expected
    answered: Any = caught.value.response
    assert answered.headers["Retry-After"] == "7"
    arm.put()


def test_a_fault_can_be_for_one_group_or_for_deployments_of_one_size(arm: Arm) -> None:
    add = arm.cloud.faults.add
    add(ArmFault(FaultKind.ERROR, group="other"))
    add(ArmFault(FaultKind.ERROR, "deployments.put", location="eastus", instance_type="Big"))
    assert arm.deploy().status == 201
    assert arm.deploy("deploy-2", vmSize="Big").status == 500


def test_the_view_of_a_machine_can_be_missing_while_the_machine_is_there(arm: Arm) -> None:
    arm.cloud.faults.add(
        ArmFault(FaultKind.ERROR, "virtualMachines.instanceView", code="ResourceNotFound")
    )
    arm.put()
    assert refused(arm.statuses) == (404, "ResourceNotFound")
    assert arm.compute.virtual_machines.get("rg", "vm-1").name == "vm-1"


@pytest.mark.parametrize(
    ("kind", "made"), [(FaultKind.LOST, 1), (FaultKind.DROP, 0), (FaultKind.HANG, 0)]
)
def test_a_call_without_answer_may_or_may_not_have_acted(
    arm: Arm, kind: FaultKind, made: int
) -> None:
    arm.cloud.faults.add(ArmFault(kind, "virtualMachines.put"))
    with pytest.raises(ServiceResponseError):
        arm.put()
    assert len(arm.cloud.machines()) == made
    arm.put()
    assert [len(arm.names(one.value)) for one in Kind] == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("GET", VM, {}, (401, "AuthenticationFailed")),
        ("GET", VM, {"Authorization": "Bearer t"}, (400, "MissingApiVersionParameter")),
        (
            "GET",
            "/subscriptions/other/resourcegroups?api-version=1",
            {"Authorization": "Bearer t"},
            (404, "SubscriptionNotFound"),
        ),
        (
            "DELETE",
            f"/subscriptions/{SUBSCRIPTION}/resourcegroups?api-version=1",
            {"Authorization": "Bearer t"},
            (404, "NotFound"),
        ),
        (
            "GET",
            f"{GROUP}/providers/Microsoft.Compute/snapshots?api-version=1",
            {"Authorization": "Bearer t"},
            (404, "NotFound"),
        ),
        (
            "PUT",
            f"{VM}?api-version=1",
            {"Authorization": "Bearer t"},
            (400, "InvalidRequestContent"),
        ),
    ],
)
def test_a_call_that_is_none_is_refused(
    arm: Arm, method: str, path: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    request = urllib.request.Request(f"{arm.url}{path}", method=method, headers=headers)
    request.data = b"[]" if method == "PUT" else None
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    body = json.loads(caught.value.read())
    caught.value.close()
    assert (caught.value.code, body["error"]["code"]) == expected


def test_a_machine_proves_who_it_is_by_attested_data_under_the_published_root(arm: Arm) -> None:
    arm.put()
    arm.clock.advance(1)
    base = f"{arm.url}/_metadata/vm-1/metadata"
    found = get(f"{base}/attested/document?api-version=2020-09-01&nonce=n1", Metadata="true")
    assert found["encoding"] == "pkcs7"
    message = base64.b64decode(found["signature"])
    [signer] = pkcs7.load_der_pkcs7_certificates(message)
    names = signer.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert [name.value for name in names] == ["metadata.azure.com"]
    access = signer.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
    issuer = x509.load_der_x509_certificate(read(access[0].access_location.value))
    root = x509.load_pem_x509_certificate(read(f"{arm.url}/_control/root-certificate"))
    signer.verify_directly_issued_by(issuer)
    issuer.verify_directly_issued_by(root)
    start = message.index(b'{"licenseType"')
    content = message[start : message.index(b"}", message.index(b'"vmId"')) + 1]
    key = signer.public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(message[-256:], content, padding.PKCS1v15(), hashes.SHA256())
    document = json.loads(content)
    assert (document["vmId"], document["nonce"]) == (arm.cloud.machine("vm-1").vm_id, "n1")
    assert document["subscriptionId"] == SUBSCRIPTION
    ends = datetime.strptime(document["timeStamp"]["expiresOn"], "%m/%d/%y %H:%M:%S %z")
    assert ends == datetime.fromtimestamp(arm.clock() + 21_600, UTC)


def test_a_machine_reads_its_tags_and_that_it_will_be_evicted(arm: Arm) -> None:
    arm.put(priority="Spot")
    arm.clock.advance(1)
    base = f"{arm.url}/_metadata/vm-1/metadata"
    compute = get(f"{base}/instance?api-version=2021-02-01", Metadata="true")["compute"]
    assert compute["tagsList"] == [{"name": "order", "value": "o1"}]
    assert (compute["name"], compute["resourceGroupName"]) == ("vm-1", "rg")
    events = f"{base}/scheduledevents?api-version=2020-07-01"
    assert get(events, Metadata="true")["Events"] == []
    post(f"{arm.url}/_control", {"warn": ["vm-1"]})
    assert get(events, Metadata="true")["Events"][0]["EventType"] == "Preempt"
    for url, headers in ((events, {}), (f"{base}/instance", {"Metadata": "true"})):
        with pytest.raises(urllib.error.HTTPError) as caught:
            get(url, **headers)
        assert caught.value.code == 400
        caught.value.close()


def test_machines_know_themselves_and_power_off(arm: Arm) -> None:
    arm.put()
    assert get(f"{arm.url}/_machines") == []
    arm.clock.advance(1)
    assert get(f"{arm.url}/_machines") == [
        {"instance_id": "vm-1", "state": "running", "reboots": 0}
    ]
    found = get(f"{arm.url}/_machines/vm-1")
    assert (found["custom_data"], found["tags"]) == ("aGVsbG8=", {"order": "o1"})
    post(f"{arm.url}/_machines/vm-1/shutdown", {})
    assert arm.cloud.machine("vm-1").power is Power.STOPPED
    assert get(f"{arm.url}/_machines") == []


def test_the_control_side_sets_up_and_tells_everything(arm: Arm) -> None:
    control = f"{arm.url}/_control"
    limits = {
        "settings": {"vm_create_seconds": 0, "resource_groups": ["rg", "more"]},
        "capacity": [{"place": "eastus", "count": 1}],
        "quotas": [{"location": "westus", "cores": 4}],
        "faults": [{"kind": "error", "action": "virtualMachines.get", "code": "ServerTimeout"}],
        "fates": [{"step": "delete", "outcome": "fail", "kind": "virtualMachines"}],
        "latency": {"*": 0.001},
        "templates": {"https://t.example.com/none": None},
    }
    post(control, limits)
    arm.put()
    assert refused(lambda: arm.put("vm-2")) == (409, "SkuNotAvailable")
    post(
        control,
        {
            "capacity": [{"place": "eastus", "count": None}],
            "quotas": [{"location": "westus", "cores": None}],
            "faults": [],
            "fates": [],
        },
    )
    seeds = {"seed": [{"group": "more", "number": 2, "tags": {}, "location": "westus"}]}
    names = post(control, seeds)["seed"]
    state = get(f"{control}/state")
    assert state["resources"]["virtualMachines"] == {"Succeeded": 3}
    assert state["calls"]["virtualMachines.put"] == {"eastus": 2}
    assert state["refusals"] == {"SkuNotAvailable": {"eastus": 1}}
    by_name = {one["name"]: one for one in get(f"{control}/resources")}
    assert by_name[names[0]]["power"] == "running"
    assert by_name[f"{names[0]}-netw"]["holder"] == names[0]
    post(control, {"delete": [names[0]], "evict": [names[1]], "reset": "counts"})
    post(control, {"forget": {"virtualMachines": ["vm-1"], "disks": [f"{names[1]}-disk"]}})
    arm.clock.advance(2)
    assert [one.power for one in arm.cloud.machines()] == [Power.DEALLOCATED]
    assert len(arm.names("disks")) == 1
    post(control, {"reset": "all"})
    assert arm.cloud.machines() == []


@pytest.mark.parametrize(
    ("path", "document", "status"),
    [
        ("/_control", {"colour": "red"}, 400),
        ("/_control", {"fates": [{"step": "sleep", "outcome": "fail"}]}, 400),
        ("/_control", {"forget": {"virtualMachines": ["vm-0"]}}, 404),
        ("/_control", {"settings": {"colour": "red"}}, 400),
        ("/_machines/vm-0/shutdown", {}, 404),
        ("/_machines", {}, 404),
    ],
)
def test_senseless_control_calls_are_refused(
    arm: Arm, path: str, document: Any, status: int
) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(f"{arm.url}{path}", document)
    assert caught.value.code == status
    caught.value.close()


def test_it_runs_alone_as_a_process(tmp_path: Path) -> None:
    config = tmp_path / "cloud.json"
    config.write_text(json.dumps({"seed": [{"group": "rg", "number": 2, "tags": {}}]}))
    arguments = [sys.executable, "-m", "infra.local.clouds.arm", "--config", str(config)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        found = get(f"{url}/_control/state")["resources"]
        assert found["virtualMachines"] == {"Succeeded": 2}
        process.terminate()
        assert process.wait(timeout=60) == 0
