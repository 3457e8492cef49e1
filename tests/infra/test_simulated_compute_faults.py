"""Throttling, faults on purpose, metadata and the control side of the simulated Compute Engine."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from google.api_core.exceptions import Forbidden, ServiceUnavailable, TooManyRequests

from infra.local.clouds.compute import ComputeCloud, Fault, FaultKind, Rate
from infra.local.clouds.compute.rates import PER_MINUTE
from tests.infra.compute_calls import ZONE, Compute, a_body, codes_of, refused, request_id

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.clouds.compute import SimulatedCompute
    from tests.infra.virtual_clock import VirtualClock

AUDIENCE = "https://tc.example.com"
EMAIL = "workers@simulated-project.iam.gserviceaccount.com"


def get(url: str, headers: dict[str, str] | None = None) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {})) as answer:
        return str(answer.read().decode())


def post(url: str, document: Any) -> Any:
    request = urllib.request.Request(url, data=json.dumps(document).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def test_calls_are_throttled_by_group_and_region_and_refill_within_a_minute(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    assert PER_MINUTE == 1500
    compute_cloud.buckets.enable({"default": Rate(1, 1 / 60)})
    compute.insert(request_id=request_id(1))
    assert refused(compute.delete) == (403, "rateLimitExceeded")
    other = "us-east1-b"
    compute.insert(a_body(zone=other), zone=other)
    assert compute.get().name == "one"
    clock.advance(60)
    compute.delete()


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("rateLimitExceeded", 0, Forbidden),
        ("rateLimitExceeded", 429, TooManyRequests),
        ("backendError", 0, ServiceUnavailable),
    ],
)
def test_a_refusal_can_be_ordered_with_a_time_to_wait(
    compute_cloud: ComputeCloud, compute: Compute, code: str, status: int, error: type[Forbidden]
) -> None:
    compute_cloud.faults.add(
        Fault(
            FaultKind.ERROR,
            "instances.insert",
            code=code,
            status=status,
            retry_after=7,
            zone=ZONE,
            machine_type="n2-standard-4",
            source_image="linux",
        )
    )
    with pytest.raises(error) as caught:
        compute.insert()
    response: Any = caught.value.response
    assert response.headers["Retry-After"] == "7"
    assert compute_cloud.refusals[code, ZONE] == 1
    compute.insert()


def test_a_fault_for_another_machine_type_does_not_hit(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    compute_cloud.faults.add(Fault(FaultKind.ERROR, machine_type="n2-standard-8", times=None))
    compute.insert()
    body = a_body("two", machineType=f"zones/{ZONE}/machineTypes/n2-standard-8")
    assert refused(lambda: compute.insert(body)) == (500, "internalError")


@pytest.mark.parametrize(("kind", "count"), [(FaultKind.LOST, 1), (FaultKind.DROP, 0)])
def test_a_lost_answer_leaves_the_machine_and_its_request_id_finds_it(
    compute_cloud: ComputeCloud, compute: Compute, kind: FaultKind, count: int
) -> None:
    compute_cloud.faults.add(Fault(kind, "instances.insert"))
    with pytest.raises(requests.exceptions.ConnectionError):
        compute.insert(request_id=request_id(1))
    assert len(compute_cloud.instances()) == count
    found = compute.insert(request_id=request_id(1))
    assert [i.instance_id for i in compute_cloud.instances()] == [str(found.target_id)]


def test_a_hanging_call_is_given_up_by_the_client(
    compute_cloud: ComputeCloud, one_compute_server: SimulatedCompute
) -> None:
    compute_cloud.faults.add(Fault(FaultKind.HANG, seconds=3600))
    path = f"/compute/v1/projects/simulated-project/zones/{ZONE}/instances"
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.get(one_compute_server.url + path, timeout=0.05)


def test_every_call_takes_its_latency(
    compute_cloud: ComputeCloud,
    compute: Compute,
    one_compute_server: SimulatedCompute,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(one_compute_server, "sleep", slept.append)
    compute_cloud.latency_seconds.update({"*": 0.05, "instances.insert": 2.0})
    compute.insert()
    compute.listed()
    assert slept == [2.0, 0.05]


class TestMetadata:
    """What a machine reads of itself."""

    @pytest.fixture
    def instance_id(self, compute_cloud: ComputeCloud, compute: Compute) -> str:
        assert compute_cloud.instances() == []
        items = [{"key": "taskcluster", "value": '{"workerPoolId": "a/b"}'}]
        accounts = [{"email": EMAIL, "scopes": ["all"]}]
        body = a_body(metadata={"items": items}, serviceAccounts=accounts)
        return str(compute.insert(body).target_id)

    @pytest.fixture
    def base(self, one_compute_server: SimulatedCompute, instance_id: str) -> str:
        return f"{one_compute_server.url}/_metadata/{instance_id}/computeMetadata/v1/"

    def read(self, base: str, path: str, **query: str) -> str:
        return get(f"{base}{path}?{urlencode(query)}", {"Metadata-Flavor": "Google"})

    def test_it_reads_its_attributes_and_place(self, base: str, instance_id: str) -> None:
        assert json.loads(self.read(base, "instance/attributes/taskcluster")) == {
            "workerPoolId": "a/b"
        }
        everything = json.loads(self.read(base, "instance/attributes/", recursive="true"))
        assert list(everything) == ["taskcluster"]
        assert self.read(base, "instance/id") == instance_id
        assert self.read(base, "instance/zone") == f"projects/123456789012/zones/{ZONE}"
        assert self.read(base, "project/project-id") == "simulated-project"
        assert self.read(base, "instance/service-accounts/default/email") == EMAIL
        assert self.read(base, "instance/preempted") == "FALSE"

    def test_its_identity_is_signed_by_a_published_key(
        self,
        base: str,
        instance_id: str,
        compute_cloud: ComputeCloud,
        clock: VirtualClock,
        one_compute_server: SimulatedCompute,
    ) -> None:
        identity = "instance/service-accounts/default/identity"
        token = self.read(base, identity, audience=AUDIENCE, format="full")
        head, claims, signature = (
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")
        )
        with urllib.request.urlopen(f"{one_compute_server.url}/oauth2/v1/certs") as answer:
            certificates = json.loads(answer.read())
            assert "max-age=3600" in answer.headers["Cache-Control"]
        kid = json.loads(head)["kid"]
        key = x509.load_pem_x509_certificate(certificates[kid].encode()).public_key()
        assert isinstance(key, rsa.RSAPublicKey)
        signed = token.rpartition(".")[0].encode()
        key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        assert json.loads(claims) == {
            "aud": AUDIENCE,
            "azp": compute_cloud.settings.service_account_id,
            "email": EMAIL,
            "email_verified": True,
            "exp": int(clock()) + 3600,
            "iat": int(clock()),
            "iss": "https://accounts.google.com",
            "sub": compute_cloud.settings.service_account_id,
            "google": {
                "compute_engine": {
                    "instance_creation_timestamp": int(clock()),
                    "instance_id": instance_id,
                    "instance_name": "one",
                    "project_id": "simulated-project",
                    "project_number": 123456789012,
                    "zone": ZONE,
                }
            },
        }
        short = self.read(base, identity, audience=AUDIENCE).split(".")[1]
        assert "google" not in json.loads(base64.urlsafe_b64decode(short + "=="))

    @pytest.mark.parametrize(
        ("path", "headers", "status"),
        [
            ("instance/id", {}, 403),
            ("instance/nothing", {"Metadata-Flavor": "Google"}, 404),
            (
                "instance/service-accounts/default/identity",
                {"Metadata-Flavor": "Google"},
                400,
            ),
        ],
    )
    def test_careless_readers_are_refused(
        self, base: str, path: str, headers: dict[str, str], status: int
    ) -> None:
        with pytest.raises(urllib.error.HTTPError) as caught:
            get(base + path, headers)
        assert caught.value.code == status
        caught.value.close()

    def test_keys_rotate_and_the_one_before_stays_published(
        self, base: str, compute_cloud: ComputeCloud, one_compute_server: SimulatedCompute
    ) -> None:
        [before] = compute_cloud.certified_keys()
        post(f"{one_compute_server.url}/_control", {"rotate_keys": None})
        published = json.loads(get(f"{one_compute_server.url}/oauth2/v1/certs"))
        assert len(published) == 2
        assert before.kid in published
        assert self.read(base, "instance/id")

    def test_the_certificates_can_fail_like_any_call(
        self, compute_cloud: ComputeCloud, one_compute_server: SimulatedCompute
    ) -> None:
        url = f"{one_compute_server.url}/oauth2/v1/certs"
        for kind in (FaultKind.ERROR, FaultKind.DROP):
            compute_cloud.faults.add(Fault(kind, "oauth2.certs", status=503))
        assert requests.get(url, timeout=60).status_code == 503
        with pytest.raises(requests.exceptions.ConnectionError):
            requests.get(url, timeout=60)
        assert requests.get(url, timeout=60).status_code == 200

    def test_its_power_is_seen_and_switched_from_outside(
        self, base: str, instance_id: str, one_compute_server: SimulatedCompute
    ) -> None:
        url = f"{one_compute_server.url}/_machines"
        (powered,) = json.loads(get(url))
        assert powered == {"instance_id": instance_id, "state": "PROVISIONING", "reboots": 0}
        assert json.loads(get(f"{url}/{instance_id}"))["attributes"]["taskcluster"]
        post(f"{url}/{instance_id}/shutdown", {})
        assert json.loads(get(url)) == []
        assert self.read(base, "instance/id") == instance_id


def test_everything_can_be_set_over_http(
    compute_cloud: ComputeCloud, compute: Compute, one_compute_server: SimulatedCompute
) -> None:
    control = f"{one_compute_server.url}/_control"
    answer = post(
        control,
        {
            "settings": {"insert_seconds": 0, "failing_seconds": 0},
            "capacity": [{"place": ZONE, "instance_type": "n2-standard-8", "count": 0}],
            "quotas": [{"region": "us-central1", "metric": "PREEMPTIBLE_CPUS", "limit": 0}],
            "faults": [{"kind": "error", "action": "instances.reset", "code": "internalError"}],
            "bad_images": ["none"],
            "bad_machine_types": ["n0-none"],
            "latency": {"disks.list": 0.0},
            "buckets": {"enabled": True, "rates": {"read_requests": [0, 0]}},
            "unreachable": ["us-east1-b"],
            "seed": [{"zone": ZONE, "number": 4, "labels": {"name": "seeded"}}],
            "seed_disks": [{"zone": ZONE, "number": 2, "labels": {}}],
        },
    )
    first, second, third, _ = answer["seed"]
    big = f"zones/{ZONE}/machineTypes/n2-standard-8"
    assert codes_of(compute.insert(a_body(machineType=big))) == ["ZONE_RESOURCE_POOL_EXHAUSTED"]
    spot = {"provisioningModel": "SPOT", "automaticRestart": False}
    assert codes_of(compute.insert(a_body(scheduling=spot))) == ["QUOTA_EXCEEDED"]
    assert refused(compute.get) == (403, "rateLimitExceeded")
    assert refused(compute.listed) == (503, "backendError")
    post(control, {"forget": [first], "forget_machines": [second], "stop": [third]})
    state = json.loads(get(f"{control}/state"))
    assert state["instances"] == {ZONE: {"STOPPING": 1, "RUNNING": 1}}
    assert state["disks"] == {"attached": 2, "left": 3}
    assert state["calls"]["instances.insert"] == {ZONE: 2}
    assert state["refusals"] == {"rateLimitExceeded": {ZONE: 1}, "backendError": {"global": 1}}
    assert json.loads(get(f"{control}/instances"))[0]["labels"] == {"name": "seeded"}
    lifted = {
        "capacity": [{"place": ZONE, "instance_type": "n2-standard-8", "count": None}],
        "quotas": [{"region": "us-central1", "metric": "PREEMPTIBLE_CPUS", "limit": None}],
        "buckets": {"enabled": False},
        "faults": [],
    }
    post(control, {"reset": "counts", **lifted, "preempt": [third]})
    assert not codes_of(compute.insert(a_body(machineType=big, scheduling=spot)))
    post(control, {"reset": "all"})
    assert (compute_cloud.instances(), compute.disk_names()) == ([], [])


@pytest.mark.parametrize(
    ("path", "document", "status"),
    [
        ("/_control", {"colour": "red"}, 400),
        ("/_control", {"quotas": [{"region": "us-central1"}]}, 400),
        ("/_control", {"stop": ["1"]}, 404),
        ("/_machines/1/shutdown", {}, 404),
        ("/_machines", {}, 404),
        ("/compute/v1/elsewhere", {}, 404),
        (f"/compute/v1/projects/simulated-project/zones/{ZONE}/instances", [], 400),
    ],
)
def test_senseless_calls_are_refused(
    compute_cloud: ComputeCloud,
    one_compute_server: SimulatedCompute,
    path: str,
    document: Any,
    status: int,
) -> None:
    assert compute_cloud.instances() == []
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(f"{one_compute_server.url}{path}", document)
    assert caught.value.code == status
    caught.value.close()


def test_it_runs_alone_as_a_process(tmp_path: Path) -> None:
    config = tmp_path / "cloud.json"
    config.write_text(json.dumps({"seed": [{"zone": ZONE, "number": 2, "labels": {}}]}))
    arguments = [sys.executable, "-m", "infra.local.clouds.compute", "--config", str(config)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert json.loads(get(f"{url}/_control/state"))["instances"] == {ZONE: {"RUNNING": 2}}
        process.terminate()
        assert process.wait(timeout=60) == 0
