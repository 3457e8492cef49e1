"""Is a machine that registers the one it says it is?

Whatever is wrong with a proof, the caller hears one sentence; our log hears which check failed,
and never the proof.  Where to read next: ``identity`` (the checks), ``registration``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api.refusals import Refusal, input_error
from worker_manager.api.schemas import AwsProof, RegisterWorkerRequest, StaticProof
from worker_manager.api.static_workers import SECRET
from worker_manager.core.errors import ProofError
from worker_manager.core.model import Location, State, Worker, WorkerKey
from worker_manager.identity.aws import verify_document
from worker_manager.identity.static import matches
from worker_manager.telemetry import logger

if TYPE_CHECKING:
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
    """Return if the proof shows that its sender is ``worker``; refuse otherwise."""
    try:
        _check(body, worker, deps)
    except ProofError as error:
        raise refused(worker.key, str(error)) from error


def is_plausible(body: RegisterWorkerRequest, deps: ApiDeps) -> bool:
    """Whether the proof holds for a machine of which we have no row yet."""
    key = WorkerKey(body.worker_pool_id, body.worker_group, body.worker_id)
    now = deps.clock()
    unknown = Worker(
        key=key,
        provider_id=body.provider_id,
        location=Location(body.worker_group),
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
    provider_type = deps.providers[body.provider_id].provider_type
    match provider_type, body.worker_identity_proof:
        case "aws", AwsProof() as proof:
            verify_document(proof.model_dump(), worker, deps.trusted_keys)
        case "static", StaticProof() as proof:
            if not matches(proof.static_secret, worker.identity.get(SECRET)):
                raise ProofError("the static secret is another")
        case _:
            raise ProofError(f"this is no proof for a provider of type {provider_type}")
