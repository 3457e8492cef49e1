from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.taskcluster.signing import KEY, NOW, a_header, a_request
from worker_manager.core.model import WorkerKey
from worker_manager.core.roles import Role, Roles
from worker_manager.core.scopes import normalise
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.credentials import (
    ISSUER_SCOPES,
    Credentials,
    Issuer,
    issue_worker_credentials,
    worker_scopes,
)
from worker_manager.taskcluster.hawk import MAX_LENGTH

WORKER = WorkerKey("proj-x/ci", "us-east-1", "i-0abc")
SERVICE = Issuer("service/worker-manager", KEY)


def issue(worker: WorkerKey = WORKER, lasting: timedelta = timedelta(days=4)) -> Credentials:
    return issue_worker_credentials(
        worker, provider_id="aws-1", issuer=SERVICE, now=NOW, expires=NOW + lasting
    )


def test_a_worker_gets_ten_scopes_in_order() -> None:
    assert worker_scopes(WORKER) == [
        "assume:worker-type:proj-x/ci",
        "assume:worker-pool:proj-x/ci",
        "assume:worker-id:us-east-1/i-0abc",
        "queue:worker-id:us-east-1/i-0abc",
        "secrets:get:worker-type:proj-x/ci",
        "secrets:get:worker-pool:proj-x/ci",
        "queue:claim-work:proj-x/ci",
        "worker-manager:remove-worker:proj-x/ci/us-east-1/i-0abc",
        "worker-manager:reregister-worker:proj-x/ci/us-east-1/i-0abc",
        "worker-manager:should-worker-terminate:proj-x/ci/us-east-1/i-0abc",
    ]


def test_the_issuer_needs_each_of_them_for_all_workers() -> None:
    assert ISSUER_SCOPES == (
        "auth:create-client:worker/*",
        "assume:worker-type:*",
        "assume:worker-pool:*",
        "assume:worker-id:*",
        "queue:worker-id:*",
        "secrets:get:worker-type:*",
        "secrets:get:worker-pool:*",
        "queue:claim-work:*",
        "worker-manager:remove-worker:*",
        "worker-manager:reregister-worker:*",
        "worker-manager:should-worker-terminate:*",
    )


def test_credentials_are_named_backdated_and_plain_text() -> None:
    credentials = issue()
    assert credentials["clientId"] == "worker/aws-1/proj-x/ci/us-east-1/i-0abc"
    certificate = json.loads(credentials["certificate"])
    assert certificate["issuer"] == SERVICE.client_id
    assert certificate["scopes"] == worker_scopes(WORKER)
    assert certificate["start"] == int((NOW - timedelta(minutes=15)).timestamp()) * 1000
    assert certificate["expiry"] == int((NOW + timedelta(days=4)).timestamp()) * 1000
    assert len(certificate["seed"]) == 44
    json.dumps(credentials)


def test_our_own_verification_accepts_them() -> None:
    issuing = Client(SERVICE.client_id, SERVICE.access_token, ISSUER_SCOPES)
    roles = Roles((Role("worker-pool:*", ("secrets:get:extra:<..>",)),))
    authenticator = LocalAuthenticator([issuing], roles, lambda: NOW)
    credentials = issue()
    header = a_header(
        client_id=credentials["clientId"],
        key=credentials["accessToken"],
        ext={"certificate": json.loads(credentials["certificate"])},
    )
    identity = authenticator.authenticate(a_request(authorization=header))
    assert identity.client_id == credentials["clientId"]
    assert identity.scopes == normalise(
        [*worker_scopes(WORKER), "assume:anonymous", "secrets:get:extra:proj-x/ci"]
    )


def test_the_header_of_a_worker_with_the_longest_ids_is_short_enough() -> None:
    worker = WorkerKey("p" * 38 + "/" + "w" * 38, "g" * 38, "i" * 38)
    credentials = issue(worker)
    header = a_header(
        client_id=credentials["clientId"],
        key=credentials["accessToken"],
        ext={"certificate": json.loads(credentials["certificate"])},
    )
    assert len(header) < MAX_LENGTH


def test_credentials_last_31_days_from_their_start_at_most() -> None:
    longest = timedelta(days=31) - timedelta(minutes=15)
    assert issue(lasting=longest)
    with pytest.raises(ValueError, match="31 days"):
        issue(lasting=longest + timedelta(seconds=1))
