"""The wire: every body of the worker-manager's API.

Field names are Taskcluster's, in camel case; optional fields that are unknown are left out, never
null.  Where to read next: ``conversions`` (from the library's nouns), ``validation`` (how bodies
are checked), ``configs`` (what is inside a pool's ``config``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StringConstraints

from worker_manager.api.provider_schemas import ProviderStatus  # noqa: TC001 - pydantic reads it
from worker_manager.api.validation import (
    Answer,
    Description,
    Email,
    Identifier,
    Moment,
    PoolId,
    Secret,
    ShortText,
    Wire,
)
from worker_manager.core.ids import ERROR_KIND, SLUGID
from worker_manager.core.model import State  # noqa: TC001 - pydantic reads it

Slugid = Annotated[str, StringConstraints(pattern=SLUGID)]
Kind = Annotated[str, StringConstraints(pattern=ERROR_KIND, max_length=128)]


class CreateWorkerPoolRequest(Wire):
    """A whole definition."""

    provider_id: Identifier
    description: Description
    config: dict[str, Any]
    owner: Email
    email_on_error: StrictBool


class UpdateWorkerPoolRequest(CreateWorkerPoolRequest):
    """A whole definition; what only we know of a pool may come back with it and is ignored."""

    worker_pool_id: PoolId | None = None
    created: Moment | None = None
    last_modified: Moment | None = None
    current_capacity: Any = None
    requested_count: Any = None
    running_count: Any = None
    stopping_count: Any = None
    stopped_count: Any = None
    requested_capacity: Any = None
    running_capacity: Any = None
    stopping_capacity: Any = None
    stopped_capacity: Any = None
    provider_status: Any = None


class Counts(Answer):
    """Workers (``…Count``) and tasks at once (``…Capacity``) by state; current is not stopped."""

    current_capacity: int = Field(ge=0)
    requested_count: int = Field(ge=0)
    running_count: int = Field(ge=0)
    stopping_count: int = Field(ge=0)
    stopped_count: int = Field(ge=0)
    requested_capacity: int = Field(ge=0)
    running_capacity: int = Field(ge=0)
    stopping_capacity: int = Field(ge=0)
    stopped_capacity: int = Field(ge=0)


class WorkerPoolFull(Counts):
    """A pool's definition and counts; of one pool alone also how its provider fares."""

    worker_pool_id: PoolId
    provider_id: Identifier
    description: Description
    created: Moment
    last_modified: Moment
    config: dict[str, Any]
    owner: str
    email_on_error: bool
    provider_status: ProviderStatus | None = None


class WorkerPoolList(Answer):
    """A page of pools; their counts are zero, see ``workerPool`` for them."""

    worker_pools: list[WorkerPoolFull]
    continuation_token: str | None = None


class LaunchConfigFull(Answer):
    """One launch config of a pool."""

    launch_config_id: Identifier
    worker_pool_id: PoolId
    is_archived: bool
    configuration: dict[str, Any]
    created: Moment
    last_modified: Moment


class ProviderEntry(Answer):
    """One provider of this deployment."""

    provider_id: Identifier
    provider_type: str
    status: ProviderStatus | None = None


class ProviderList(Answer):
    """A page of providers."""

    providers: list[ProviderEntry]
    continuation_token: str | None = None


class WorkerFull(Answer):
    """A worker as the worker manager knows it.

    ``decisionId`` names the decision that made it (getWorkerPoolDecision); of one that ends,
    ``stopReason`` says why and ``stoppedBy`` who decided: a client id, ``worker-manager`` or the
    ``cloud``.  Of a static worker ``hasCurrentLaunchConfig`` says whether the launch config that it
    registered with is its pool's, and ``previousSecretValidUntil`` for how long its old secret is
    taken beside the new one.
    """

    worker_pool_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    provider_id: Identifier
    created: Moment
    expires: Moment
    last_modified: Moment
    last_checked: Moment
    state: State
    capacity: int = Field(ge=1)
    launch_config_id: Identifier | None = None
    decision_id: str | None = None
    stop_reason: str | None = None
    stopped_by: str | None = None
    last_registered: Moment | None = None
    boot_time: Moment | None = None
    has_current_launch_config: bool | None = None
    previous_secret_valid_until: Moment | None = None


class WorkerList(Answer):
    """A page of workers."""

    workers: list[WorkerFull]
    continuation_token: str | None = None


class ShouldTerminateAnswer(Answer):
    """Whether a worker should finish what it does and leave."""

    terminate: bool
    reason: str = Field(min_length=1)


class AwsProof(Wire):
    """An instance identity document and its signature, as the metadata service gives them."""

    document: str
    signature: str


class StaticProof(Wire):
    """The secret that the worker was created with."""

    static_secret: Secret


class TokenProof(Wire):
    """A Google identity token."""

    token: str


class DocumentProof(Wire):
    """An attested document of Azure."""

    document: str


class RegisterWorkerRequest(Wire):
    """What a machine says of itself when it starts."""

    worker_pool_id: PoolId
    provider_id: Identifier
    worker_group: Identifier
    worker_id: Identifier
    worker_identity_proof: AwsProof | StaticProof | TokenProof | DocumentProof
    system_boot_time: Moment | None = None


class Credentials(Answer):
    """Temporary credentials."""

    client_id: str
    access_token: str
    certificate: str


class ReregisterWorkerRequest(Wire):
    """A registered worker asks for new credentials, with the secret of the last ones."""

    worker_pool_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    secret: Secret


class ReregisterWorkerResponse(Answer):
    """New credentials and the secret with which to renew them."""

    expires: Moment
    credentials: Credentials
    secret: Secret


class RegisterWorkerResponse(ReregisterWorkerResponse):
    """The first credentials, and how the worker is to be configured.

    Static workers also hear which launch config that is, and whether it is still their pool's.
    """

    worker_config: dict[str, Any]
    launch_config_id: Identifier | None = None
    has_current_launch_config: bool | None = None


class ReportWorkerErrorRequest(Wire):
    """Something went wrong on a worker."""

    worker_group: Identifier
    worker_id: Identifier
    kind: Kind
    title: ShortText
    description: Description
    extra: dict[str, Any]


class WorkerPoolError(Answer):
    """Something that went wrong for a pool."""

    worker_pool_id: PoolId
    error_id: Slugid
    reported: Moment
    kind: ShortText
    title: ShortText
    description: Description
    extra: dict[str, Any]
    launch_config_id: Identifier | None = None


class WorkerPoolErrorList(Answer):
    """A page of errors, newest first."""

    worker_pool_errors: list[WorkerPoolError]
    continuation_token: str | None = None


class PingAnswer(Answer):
    """Alive, and for how many seconds."""

    alive: Literal[True]
    uptime: float


class VersionAnswer(Answer):
    """What runs here, in Mozilla's Dockerflow shape."""

    version: str
    source: str
    commit: str
    build: str
