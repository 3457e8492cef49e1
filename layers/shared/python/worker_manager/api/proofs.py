"""Is a machine that registers the one it says it is?

Whatever is wrong with a proof, the caller hears one sentence; our log hears which check failed,
and never the proof.  Where to read next: ``identity`` (the checks), ``registration``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api.refusals import Refusal, input_error, unavailable
from worker_manager.api.schemas import (
    AwsProof,
    DocumentProof,
    RegisterWorkerRequest,
    StaticProof,
    TokenProof,
)
from worker_manager.core.errors import ProofError, ProofUnavailableError
from worker_manager.core.model import Location, State, Worker, WorkerKey
from worker_manager.identity.aws import verify_document
from worker_manager.identity.static import is_current, is_valid
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps


def refused(key: WorkerKey, why: str) -> Refusal:
    """The one answer to every failed proof; the reason goes to our log."""
    logger.warning(
        "registration refused",
        pool=key.pool_id,
        group=key.group,
        worker=key.worker_id,
        why=why,
    )
    return input_error("The identity of this worker could not be verified")


def verify(body: RegisterWorkerRequest, worker: Worker, deps: ApiDeps) -> None:
    """Return if the proof shows that its sender is ``worker``; refuse otherwise.

    A proof that cannot be checked now is no wrong one: its sender is to come back (B30).
    """
    key = worker.key
    try:
        _check(body, worker, deps)
    except ProofError as error:
        raise refused(key, str(error)) from error
    except ProofUnavailableError as error:
        logger.warning(
            "proof not checked",
            pool=key.pool_id,
            group=key.group,
            worker=key.worker_id,
            why=str(error),
        )
        raise unavailable() from error


def is_plausible(body: RegisterWorkerRequest, deps: ApiDeps) -> bool:
    """Whether the proof holds for a machine of which we have no row yet.

    Azure's machines have one before they are ordered.
    """
    provider = deps.providers[body.provider_id]
    if provider.provider_type == "azure":
        return False
    key = WorkerKey(body.worker_pool_id, body.worker_group, body.worker_id)
    now = deps.clock()
    unknown = Worker(
        key=key,
        provider_id=body.provider_id,
        location=Location(provider.options.get("project", body.worker_group)),
        state=State.REQUESTED,
        capacity=1,
        created=now,
        modified=now,
    )
    try:
        _check(body, unknown, deps)
    except ProofError:
        return False
    return True


def _check(body: RegisterWorkerRequest, worker: Worker, deps: ApiDeps) -> None:
    provider = deps.providers[body.provider_id]
    match provider.provider_type, body.worker_identity_proof:
        case "aws", AwsProof() as proof:
            verify_document(proof.model_dump(), worker, deps.trusted_keys)
        case "static", StaticProof() as proof:
            _check_secret(proof.static_secret, worker, deps.clock())
        case "google", TokenProof() as proof:
            from worker_manager.identity.google import verify_token  # noqa: PLC0415

            verify_token(
                proof.model_dump(),
                worker,
                project=provider.options["project"],
                audience=deps.root_url,
                service_account_id=provider.options["serviceAccountId"],
                keys=deps.google_keys,
                now=deps.clock(),
            )
        case "azure", DocumentProof() as proof:
            from worker_manager.identity import azure  # noqa: PLC0415

            azure.verify_document(
                proof.model_dump(), worker, anchors=deps.azure_anchors, now=deps.clock()
            )
        case _:
            raise ProofError(f"this is no proof for a provider of type {provider.provider_type}")


def _check_secret(secret: str, worker: Worker, now: datetime) -> None:
    """A rotation is over for a machine once it has the new secret: until then our log tells."""
    if not is_valid(secret, worker.identity, now):
        raise ProofError("the static secret is another")
    if not is_current(secret, worker.identity):
        key = worker.key
        logger.info(
            "registered with the previous secret",
            pool=key.pool_id,
            group=key.group,
            worker=key.worker_id,
        )
