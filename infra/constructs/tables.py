"""The tables, by the keys that ``worker_manager.store`` reads them with.

The library's models say what is kept under which key; a test compares both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from worker_manager.store.tables import LIVE_ATTRIBUTES

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

    from infra.settings import StageSettings


@dataclass(frozen=True)
class NamedTable:
    """A table, and the environment variable by which functions learn its name."""

    table: dynamodb.Table
    variable: str
    has_index: bool = False


def _key(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


class Tables(Construct):
    """All tables of a stage: on demand, expiring by ``ttl``, restorable to any second."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        key: kms.IKey | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._key = key
        self.pools = self._table("pools", "worker_pool_id", "sk")
        self.providers = self._table("providers", "provider_id", "worker_pool_id")
        self.workers = self._table("workers", "worker_pool_id", "sk", index="live")
        self.errors = self._table("pool_errors", "worker_pool_id", "sk", variable="ERRORS")
        self.health = self._table("health", "worker_pool_id", "sk")
        self.registry = self._table("registry", "pk", "sk")
        self.actions = self._table("actions", "pk", "sk")
        self.queue = self._table("queue", "pk", "sk") if settings.has_builtin_queue else None

    def _table(
        self,
        name: str,
        hash_key: str,
        range_key: str,
        *,
        variable: str | None = None,
        index: str | None = None,
    ) -> NamedTable:
        table = dynamodb.Table(
            self,
            name.title().replace("_", ""),
            table_name=self._settings.resource_name(name),
            partition_key=_key(hash_key),
            sort_key=_key(range_key),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="ttl",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if self._key else None,
            encryption_key=self._key,
            deletion_protection=self._settings.keeps_tables,
            removal_policy=(
                RemovalPolicy.RETAIN if self._settings.keeps_tables else RemovalPolicy.DESTROY
            ),
        )
        if index:
            # Local, so that it can be read consistently; it cannot be added to a table later.
            table.add_local_secondary_index(
                index_name=index,
                sort_key=_key(index),
                projection_type=dynamodb.ProjectionType.INCLUDE,
                non_key_attributes=sorted(LIVE_ATTRIBUTES),
            )
        return NamedTable(table, f"WM_TABLE_{variable or name.upper()}", index is not None)
