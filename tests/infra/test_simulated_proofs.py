"""What simulated clouds sign for their machines is what our checks ask of real ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from infra.local.clouds.arm.identity import Attestation, document_of, root_pem
from infra.local.clouds.compute.identity import CertifiedKey, claims_of
from infra.local.clouds.compute.settings import Settings
from infra.local.clouds.keys import SigningKey
from tests.factories import a_worker
from worker_manager.identity.azure import verify_document
from worker_manager.identity.azure_certificates import AzureAnchors, load_roots
from worker_manager.identity.azure_downloads import IssuerDownloads
from worker_manager.identity.downloads import Downloaded
from worker_manager.identity.google import verify_token
from worker_manager.identity.google_keys import GoogleKeys

NOW = datetime.now(UTC)


def test_a_machine_of_simulated_azure_proves_itself() -> None:
    key = SigningKey.generate()
    cloud = Attestation(key, issuer_url="http://127.0.0.1:9/issuer.crt", now=NOW)
    machine: Any = SimpleNamespace(vm_id="vm-id")
    document = document_of(machine, subscription="s", nonce="n", now=NOW.timestamp(), seconds=600)
    issuer = Downloaded(cloud.issuer.public_bytes(Encoding.DER))
    anchors = AzureAnchors(
        load_roots([root_pem(key)]),
        IssuerDownloads(further_hosts=["127.0.0.1:9"], fetching=lambda _: issuer),
    )
    worker = a_worker("vm-1", identity={"vmId": "vm-id"})
    verify_document({"document": cloud.sign(document)}, worker, anchors=anchors, now=NOW)


def test_a_machine_of_simulated_compute_engine_proves_itself() -> None:
    key, settings = CertifiedKey.generate(), Settings()
    machine: Any = SimpleNamespace(
        instance_id="4567", name="worker-1", project="p", zone="us-central1-a", created_at=0.0
    )
    claims = claims_of(
        machine,
        settings,
        email="w@p.iam.gserviceaccount.com",
        audience="https://tc.example.com",
        full=True,
        now=NOW.timestamp(),
    )
    published = Downloaded(json.dumps({key.kid: key.pem}).encode())
    verify_token(
        {"token": key.token(claims)},
        a_worker("4567", group="us-central1-a"),
        project="p",
        audience="https://tc.example.com",
        service_account_id=settings.service_account_id,
        keys=GoogleKeys(fetching=lambda _: published),
        now=NOW,
    )
