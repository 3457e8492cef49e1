"""The tables: keys, attributes, and how models are bound to one shared client.

Which key holds what is said at each model.  ``Tables.bind`` gives models for one set of table
names over one botocore session, so that PynamoDB and boto3 share what is expensive to load.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.config import Config
from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)
from pynamodb.connection import Connection
from pynamodb.indexes import IncludeProjection, LocalSecondaryIndex
from pynamodb.models import MetaModel, Model

from worker_manager.store.attributes import CompactJson, MomentAttribute
from worker_manager.store.transactions import retry_collisions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.session import Session

_ModelT = TypeVar("_ModelT", bound=Model)

LIVE_ATTRIBUTES = [
    "version",
    "state",
    "capacity",
    "provider_id",
    "launch_config_id",
    "order_id",
    "created",
    "modified",
    "expires",
    "deadline",
    "launched",
    "registration_seconds",
    "inactivity_seconds",
    "registered",
    "first_claim",
    "quarantine_until",
    "stopping_since",
    "stop_reason",
    "surplus",
    "unsent",
]
"""What planning needs of a live worker, projected into the index ``live``."""


class PoolItem(Model):
    """Table ``pools``: everything of one pool in one partition, but its audit trail.

    ``sk`` is ``pool`` (the definition and its heads), ``body#<launch config id>``, ``ctl`` (the
    control item), ``plan#<tick>`` or ``scanned#<provider id>#<location>``.  Partition
    ``<pool id>#audit`` is the trail; there ``sk`` is ``<time>#<id>``.
    """

    class Meta:
        """Bound by ``Tables.bind``."""

        table_name = "pools"

    worker_pool_id = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    version = NumberAttribute(null=True)
    ttl = NumberAttribute(null=True)
    provider_id = UnicodeAttribute(null=True)
    # pool
    description = UnicodeAttribute(null=True)
    owner = UnicodeAttribute(null=True)
    email_on_error = BooleanAttribute(null=True)
    config = CompactJson(null=True)
    heads = CompactJson(null=True)
    previous = CompactJson(null=True)
    created = MomentAttribute(null=True)
    modified = MomentAttribute(null=True)
    # body#<launch config id>
    body = UnicodeAttribute(null=True)
    manager = CompactJson(null=True)
    # ctl
    open_plans = CompactJson(null=True)
    reasons_hash = UnicodeAttribute(null=True)
    breakers = CompactJson(null=True)
    pauses = CompactJson(null=True)
    probed = MomentAttribute(null=True)
    probe_wait = NumberAttribute(null=True)
    # plan#<tick>
    closed = BooleanAttribute(null=True)
    plan = UnicodeAttribute(null=True)
    # <pool id>#audit
    audit = UnicodeAttribute(null=True)


class ProviderItem(Model):
    """Table ``providers``: who works where, and what the lists said.

    Partition ``<provider id>``: a pool's membership under its id, a location under
    ``loc#<location>``.  Partition ``#all``: one item a pool, for listing.  Partition ``#outbox``:
    events of pools and errors that are not yet published.  Partition ``#mail-due``: errors that
    nobody was mailed of yet; ``#mail``: what each pool's owner was told, under the pool's id.
    A provider's partition also says under ``#status#<activity>`` that it fails at something.
    Partition ``#slots#<provider id>``: see ``store.slots``.
    """

    class Meta:
        """Bound by ``Tables.bind``."""

        table_name = "providers"

    provider_id = UnicodeAttribute(hash_key=True)
    worker_pool_id = UnicodeAttribute(range_key=True)
    # membership
    places = UnicodeSetAttribute(null=True)
    previous = BooleanAttribute(null=True)
    empty_since = CompactJson(null=True)
    # loc#<location>
    complete = MomentAttribute(null=True)
    machines = NumberAttribute(null=True)
    told = NumberAttribute(null=True)
    held = NumberAttribute(null=True)
    strays = NumberAttribute(null=True)
    strays_held = NumberAttribute(null=True)
    absent = UnicodeSetAttribute(null=True)
    not_before = MomentAttribute(null=True)
    stale_since = MomentAttribute(null=True)
    stale_reason = UnicodeAttribute(null=True)
    # off#<offering>
    breaker = CompactJson(null=True)
    since = MomentAttribute(null=True)
    ttl = NumberAttribute(null=True)
    # #outbox
    event = UnicodeAttribute(null=True)
    created = MomentAttribute(null=True)
    # #mail-due, #mail
    ttl = NumberAttribute(null=True)
    version = NumberAttribute(null=True)
    mail = CompactJson(null=True)
    # #slots#<provider id>
    slots = NumberAttribute(null=True)
    holders = UnicodeSetAttribute(null=True)
    # #status#<activity>
    since = MomentAttribute(null=True)
    seen = MomentAttribute(null=True)
    kind = UnicodeAttribute(null=True)
    reason = UnicodeAttribute(null=True)


class LiveIndex(LocalSecondaryIndex[Any]):  # type: ignore[no-untyped-call]
    """Live workers of a pool by location and age; the stopped ones are not in it."""

    class Meta:
        """A local index, so that it can be read consistently."""

        index_name = "live"
        projection = IncludeProjection(LIVE_ATTRIBUTES)

    worker_pool_id = UnicodeAttribute(hash_key=True)
    live = UnicodeAttribute(range_key=True)


class WorkerItem(Model):
    """Table ``workers``: ``sk`` is ``<group>#<worker id>``.

    ``live`` is ``<location>#<created>#<worker id>``, absent once the worker is stopped and
    nothing of it is unsent; then ``ttl`` is set.
    """

    class Meta:
        """Bound by ``Tables.bind``."""

        table_name = "workers"

    worker_pool_id = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    live = UnicodeAttribute(null=True)
    live_index = LiveIndex()
    ttl = NumberAttribute(null=True)
    version = NumberAttribute()
    provider_id = UnicodeAttribute()
    location = UnicodeAttribute(null=True)
    state = UnicodeAttribute()
    capacity = NumberAttribute()
    launch_config_id = UnicodeAttribute(null=True)
    order_id = UnicodeAttribute(null=True)
    created = MomentAttribute()
    modified = MomentAttribute()
    expires = MomentAttribute(null=True)
    deadline = MomentAttribute(null=True)
    launched = MomentAttribute(null=True)
    registration_seconds = NumberAttribute(null=True)
    reregistration_seconds = NumberAttribute(null=True)
    inactivity_seconds = NumberAttribute(null=True)
    registered = MomentAttribute(null=True)
    registrations = CompactJson(null=True)
    boot_time = MomentAttribute(null=True)
    rebooted = MomentAttribute(null=True)
    first_claim = MomentAttribute(null=True)
    quarantine_until = MomentAttribute(null=True)
    stopping_since = MomentAttribute(null=True)
    stop_reason = UnicodeAttribute(null=True)
    stopped_by = UnicodeAttribute(null=True)
    decision = UnicodeAttribute(null=True)
    surplus = CompactJson(null=True)
    identity = CompactJson(null=True)
    secret_hash = UnicodeAttribute(null=True)
    previous_secret_hash = UnicodeAttribute(null=True)
    secret_rotated = MomentAttribute(null=True)
    unsent = CompactJson(null=True)


class PoolErrorItem(Model):
    """Table ``pool_errors``: ``sk`` is ``<reported>#<error id>``; ``ttl`` is the retention."""

    class Meta:
        """Bound by ``Tables.bind``."""

        table_name = "pool_errors"

    worker_pool_id = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = NumberAttribute(null=True)
    reported = MomentAttribute()
    kind = UnicodeAttribute()
    title = UnicodeAttribute()
    description = UnicodeAttribute()
    extra = CompactJson(null=True)
    launch_config_id = UnicodeAttribute(null=True)


class HealthItem(Model):
    """Table ``health``: ``sk`` is ``<bucket>#<launch config id>``.

    Counters are only added to; beside them is when each outcome came last in this bucket.
    """

    class Meta:
        """Bound by ``Tables.bind``."""

        table_name = "health"

    worker_pool_id = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = NumberAttribute(null=True)
    requested = NumberAttribute(null=True)
    launched = NumberAttribute(null=True)
    registered = NumberAttribute(null=True)
    claimed = NumberAttribute(null=True)
    failed_no_capacity = NumberAttribute(null=True)
    failed_quota_exceeded = NumberAttribute(null=True)
    failed_invalid_launch_config = NumberAttribute(null=True)
    failed_not_authorized = NumberAttribute(null=True)
    failed_lost = NumberAttribute(null=True)
    failed_never_registered = NumberAttribute(null=True)
    failed_never_claimed = NumberAttribute(null=True)
    failed_other = NumberAttribute(null=True)
    launched_at = MomentAttribute(null=True)
    registered_at = MomentAttribute(null=True)
    claimed_at = MomentAttribute(null=True)
    failed_at = MomentAttribute(null=True)
    failed_kind = UnicodeAttribute(null=True)
    failed_reason = UnicodeAttribute(null=True)


TABLES: Mapping[str, type[Model]] = {
    "pools": PoolItem,
    "providers": ProviderItem,
    "workers": WorkerItem,
    "pool_errors": PoolErrorItem,
    "health": HealthItem,
}
"""Every table by its short name, with the model that tells its keys."""


def bind(model: type[_ModelT], table_name: str, connection: Connection) -> type[_ModelT]:
    """Return ``model`` for one table over one shared connection.

    PynamoDB would make a session, a client and a connection for each model; its connection
    object serves any number of tables, so all models get the same one.
    """
    meta = type("Meta", (), {"table_name": table_name})
    namespace = {"Meta": meta, "__module__": model.__module__}
    bound = cast("type[_ModelT]", MetaModel(model.__name__, (model,), namespace))
    table = bound._get_connection()
    with suppress(ValueError):  # known already: several models may share a table
        connection.add_meta_table(table.get_meta_table())
    table.connection = connection
    return bound


def connect(session: Session, region: str) -> Connection:
    """A PynamoDB connection whose client comes from ``session``; safe to use from threads.

    Attempts are few and short: a tick is disposable and a client retries, so nobody waits long.
    """
    client = session.create_client(
        "dynamodb",
        region_name=region,
        config=Config(
            parameter_validation=False,
            connect_timeout=3,
            read_timeout=10,
            max_pool_connections=32,
            retries={"total_max_attempts": 4, "mode": "standard"},
        ),
    )
    retry_collisions(client)
    connection = Connection(region=region)
    connection._client = client  # type: ignore[assignment]
    return connection


@dataclass(frozen=True, slots=True)
class Tables:
    """All models, bound."""

    connection: Connection
    pools: type[PoolItem]
    providers: type[ProviderItem]
    workers: type[WorkerItem]
    pool_errors: type[PoolErrorItem]
    health: type[HealthItem]

    @classmethod
    def bind(cls, names: Mapping[str, str], session: Session, region: str) -> Tables:
        """Bind every model to its name in ``names`` (short name → table name).

        A name that a function was not given stays the short name: using it fails loudly.
        """
        connection = connect(session, region)
        models: dict[str, Any] = {
            short: bind(model, names.get(short, short), connection)
            for short, model in TABLES.items()
        }
        return cls(connection=connection, **models)
