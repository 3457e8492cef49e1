"""Nonsense and lies over the wire: each is the documented 4xx, and nothing is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]
import pytest
import taskcluster  # type: ignore[import-untyped]

from infra.local.clouds.ec2.identity import signature_of
from infra.local.clouds.keys import SigningKey
from infra.local.stage import ACCESS_TOKEN, CLIENT_ID
from tests.journeys.world import BASE, a_pool, key_of

if TYPE_CHECKING:
    import requests

    from tests.journeys.world import World

pytestmark = pytest.mark.journey

REGISTER = f"{BASE}/worker/register"
JSON = "application/json"


def signed(
    world: World, method: str, path: str, *, body: bytes = b"", content_type: str = JSON
) -> requests.Response:
    """A request of the local stage's client that no stock client would send."""
    sender = mohawk.Sender(
        credentials={"id": CLIENT_ID, "key": ACCESS_TOKEN, "algorithm": "sha256"},
        url=world.stage.root_url + path,
        method=method,
        content=body,
        content_type=content_type,
        ext="",
    )
    headers = {"Authorization": sender.request_header, "Content-Type": content_type}
    return world.send(method, path, data=body, headers=headers)


def refused(answer: requests.Response) -> tuple[int, str]:
    body = answer.json()
    assert set(body) == {"code", "message", "requestInfo"}
    return answer.status_code, body["code"]


class TestIdentities:
    """To a worker-runner a 4xx is final: the machine that lies does not come back."""

    def register(self, world: World, machine: dict[str, Any], **overrides: Any) -> tuple[int, str]:
        answer = world.send("POST", REGISTER, json=world.registration(machine, **overrides))
        assert answer.status_code != 200
        assert answer.json()["requestInfo"]["payload"] == "(OMITTED)"
        assert world.manager.worker(*key_of(machine))["state"] == "requested"
        return refused(answer)

    def test_a_tampered_document_is_refused(self, world: World, machine: dict[str, Any]) -> None:
        proof = world.proof(machine["workerId"])
        document = proof["document"].replace("m5.large", "m5.metal")
        assert document != proof["document"]
        tampered = {**proof, "document": document}
        told = self.register(world, machine, workerIdentityProof=tampered)
        assert told == (400, "InputError")
        world.register(machine)

    def test_a_document_signed_by_nobody_we_trust_is_refused(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        document = world.proof(machine["workerId"])["document"]
        signature = signature_of(SigningKey.generate(), document)
        forged = {"document": document, "signature": signature}
        assert self.register(world, machine, workerIdentityProof=forged) == (400, "InputError")

    def test_the_document_of_another_machine_is_refused(
        self, world: World, machine: dict[str, Any], machines: list[dict[str, Any]]
    ) -> None:
        foreign = world.proof(machines[0]["workerId"])
        assert self.register(world, machine, workerIdentityProof=foreign) == (400, "InputError")

    def test_a_proof_of_another_kind_is_refused(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        for proof, code in (
            ({"staticSecret": "s" * 44}, "InputError"),
            ({"token": "abc"}, "InputError"),
            ({}, "InputValidationError"),
            ({"document": 1, "signature": 2}, "InputValidationError"),
        ):
            assert self.register(world, machine, workerIdentityProof=proof) == (400, code)

    def test_a_machine_that_nobody_ordered_is_unknown(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        told = self.register(
            world,
            machine,
            workerId="i-0123456789abcdef0",
            workerIdentityProof=world.proof(machine["workerId"]),
        )
        assert told == (404, "ResourceNotFound")

    def test_a_proof_that_was_used_is_of_no_use_to_a_thief(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        booted = {"systemBootTime": "2026-01-02T03:04:05.000Z"}
        body = world.registration(machine, **booted)
        assert world.send("POST", REGISTER, json=body).status_code == 200
        stolen = {**body, "systemBootTime": "2026-01-02T03:09:09.000Z"}
        assert refused(world.send("POST", REGISTER, json=stolen)) == (400, "InputError")
        assert world.send("POST", REGISTER, json=body).status_code == 200  # its answer was lost

    def test_a_proof_is_of_no_use_once_its_machine_was_removed(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        body = world.registration(machine)
        assert world.send("POST", REGISTER, json=body).status_code == 200
        world.manager.removeWorker(*key_of(machine))
        assert refused(world.send("POST", REGISTER, json=body)) == (400, "InputError")


class TestForm:
    @pytest.mark.parametrize(
        "pool_id", ["x", "x%2F-y", "x%2F" + "y" * 39, "x%2Fy%00", "%C3%A4%2Fb"]
    )
    def test_a_malformed_pool_id_is_named(self, world: World, pool_id: str) -> None:
        answer = signed(world, "GET", f"{BASE}/worker-pool/{pool_id}")
        assert refused(answer) == (400, "InvalidRequestArguments")
        assert "workerPoolId" in answer.json()["message"]

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"providerId": "no-such"}, "no-such"),
            ({"owner": "nobody"}, "owner"),
            ({"surprise": 1}, "surprise"),
            ({"config": {}}, "launchConfigs"),
        ],
    )
    def test_a_pool_that_cannot_be_is_refused_by_field(
        self, world: World, change: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as caught:
            world.manager.createWorkerPool("journey/bad", {**a_pool(), **change})
        assert caught.value.status_code == 400
        assert field in caught.value.body["message"]
        answer = signed(world, "GET", f"{BASE}/worker-pool/journey%2Fbad")
        assert refused(answer) == (404, "ResourceNotFound")

    @pytest.mark.parametrize(
        "change", [{"minCapacity": 5}, {"maxCapacity": -1}, {"scalingRatio": -0.5}]
    )
    def test_numbers_that_contradict_each_other_are_refused(
        self, world: World, change: dict[str, Any]
    ) -> None:
        definition = a_pool(maximum=4)
        definition["config"] |= change
        body = json.dumps(definition).encode()
        answer = signed(world, "PUT", f"{BASE}/worker-pool/journey%2Fbad", body=body)
        assert refused(answer) == (400, "InputValidationError")

    def test_parameters_that_are_ours_to_set_are_refused(self, world: World) -> None:
        definition = a_pool()
        definition["config"]["launchConfigs"][0]["launchConfig"]["UserData"] = "eA=="
        body = json.dumps(definition).encode()
        answer = signed(world, "PUT", f"{BASE}/worker-pool/journey%2Fbad", body=body)
        assert refused(answer) == (400, "InputValidationError")
        assert "UserData" in answer.json()["message"]

    def test_what_is_not_json_is_refused(self, world: World) -> None:
        path = f"{BASE}/worker-pool/journey%2Fbad"
        for body, content_type in (
            (b"{", JSON),
            (b"\xff\xfe", JSON),
            (b'"text"', JSON),
            (b"a=b", "application/x-www-form-urlencoded"),
            (b"{}", "text/plain"),
        ):
            answer = signed(world, "PUT", path, body=body, content_type=content_type)
            assert refused(answer) == (400, "MalformedPayload")

    @pytest.mark.parametrize("megabytes", [5, 11])
    def test_an_oversized_body_is_a_413(self, world: World, megabytes: int) -> None:
        """Whether ours to refuse or the gateway's."""
        body = b'{"description": "' + b"x" * (megabytes << 20) + b'"}'
        answer = world.send(
            "PUT",
            f"{BASE}/worker-pool/journey%2Fbad",
            data=body,
            headers={"Content-Type": JSON},
        )
        assert refused(answer) == (413, "InputTooLarge")

    def test_who_may_not_call_learns_nothing_of_their_body(self, world: World) -> None:
        path = f"{BASE}/workers/journey%2Fbad/rack-1/host-1"
        answer = world.send("PUT", path, json={"nonsense": True})
        assert refused(answer) == (403, "InsufficientScopes")
