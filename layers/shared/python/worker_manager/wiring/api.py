"""Building the API's functions, once per container, from their settings.

Where to read next: ``base`` (what every function shares), ``queue`` (its twin), ``api.app``.
"""

from __future__ import annotations

import secrets
from functools import cache, cached_property
from typing import TYPE_CHECKING

from worker_manager import settings as settings_module
from worker_manager.api import routes
from worker_manager.api.app import App
from worker_manager.api.deps import ApiDeps
from worker_manager.core.ids import derived_slugid
from worker_manager.identity.aws import bundled_keys, load_keys
from worker_manager.queues import SqsSender
from worker_manager.store.audit import AuditStore
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Clients
from worker_manager.taskcluster.memory import Memory
from worker_manager.wiring.base import Base, later, now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.identity.azure_certificates import AzureAnchors
    from worker_manager.identity.google_keys import GoogleKeys
    from worker_manager.queues import Sender
    from worker_manager.taskcluster.auth import Authenticator

QUEUE_LISTS = 8
"""Pools whose workers, as a queue lists them, one container keeps at a time."""


def new_secret() -> str:
    """44 random characters."""
    return secrets.token_urlsafe(33)


def new_slugid() -> str:
    """A random slugid."""
    return derived_slugid(secrets.token_hex(16))


class Api(Base):
    """What a function behind the front door works with."""

    @cached_property
    def clients(self) -> Clients:
        """Everybody who may sign, and who issues worker credentials."""
        return Clients.from_json(self.secret("WM_AUTH_SECRET"))

    @cached_property
    def authenticator(self) -> Authenticator:
        """Who says who signed a request: our own book, or a Taskcluster auth service."""
        root_url = self.settings.auth_root_url
        if root_url is None:
            return LocalAuthenticator(self.clients.by_id.values(), self.clients.roles, now)
        # Only where it is used: no other function behind the gateway speaks HTTP itself.
        from worker_manager.taskcluster.auth_service import AuthService  # noqa: PLC0415
        from worker_manager.taskcluster.remote_auth import RemoteAuthenticator  # noqa: PLC0415

        return RemoteAuthenticator(AuthService(root_url), issuer=self.clients.issuer, now=now)

    def provider_senders(self) -> Mapping[str, Mapping[str, Sender]]:
        """The queues of every provider that has a loop."""
        client = self.client("sqs")
        return {
            provider_id: {purpose: SqsSender(client, url) for purpose, url in urls.items()}
            for provider_id, urls in self.settings.provider_queues.items()
        }

    @property
    def has_embedded_queue(self) -> bool:
        """Whether tasks are asked for where we answer; no, if this function may not ask at all."""
        if not self.has("WM_QUEUE_ROOT_URL"):
            return False
        return self.settings.queue_root_url == self.settings.root_url

    # Where no machine of their cloud registers, their libraries are not loaded.

    def _google_keys(self) -> GoogleKeys:
        from worker_manager.identity.google_keys import (  # noqa: PLC0415
            CERTIFICATES_URL,
            GoogleKeys,
        )

        return GoogleKeys(self.settings.google_certificates_url or CERTIFICATES_URL)

    def _azure_anchors(self) -> AzureAnchors:
        from worker_manager.identity import azure_certificates  # noqa: PLC0415
        from worker_manager.identity.azure_downloads import IssuerDownloads  # noqa: PLC0415

        given = self.settings.trusted_azure_roots
        further = azure_certificates.load_roots([given]) if given else ()
        return azure_certificates.AzureAnchors(
            (*azure_certificates.bundled_roots(), *further),
            IssuerDownloads(further_hosts=self.settings.azure_issuer_hosts),
        )

    def deps(self) -> ApiDeps:
        """For the worker-manager's API."""
        given = self.settings.trusted_ec2_keys
        return ApiDeps(
            stores=self.stores,
            errors=self.errors,
            audit=AuditStore(self.tables, kept=self.timing.audit_kept),
            outbox=self.outbox,
            authenticator=self.authenticator,
            root_url=self.settings.root_url,
            providers=self.settings.providers,
            senders=self.provider_senders(),
            queue=later(self.queue),
            has_embedded_queue=self.has_embedded_queue,
            queue_lists=Memory(QUEUE_LISTS),
            issuer=self.clients.issuer,
            clock=now,
            new_secret=new_secret,
            new_slugid=new_slugid,
            timing=self.timing,
            trusted_keys=(*bundled_keys(), *(load_keys([given]) if given else ())),
            google_keys=later(self._google_keys),
            azure_anchors=later(self._azure_anchors),
            page_bytes=self.settings.page_bytes,
            started=now(),
        )


@cache
def pools_api() -> App[ApiDeps]:
    """For operators."""
    return App(routes.POOLS, Api(settings_module.load()).deps())


@cache
def workers_api() -> App[ApiDeps]:
    """For machines."""
    return App(routes.WORKERS, Api(settings_module.load()).deps())
