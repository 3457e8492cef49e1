"""The SDK's clients, and the session by which lists are read.

Each client is made when it is first needed.  Lists are read as JSON through a session of
google-auth with the same credentials: the SDK's messages take ten times the processor.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from google.auth.transport.requests import AuthorizedSession
from google.cloud.compute_v1.services.disks import DisksClient
from google.cloud.compute_v1.services.instances import InstancesClient
from google.cloud.compute_v1.services.zone_operations import ZoneOperationsClient

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

HOST = "compute.googleapis.com"


class Clients:
    """Clients of Compute Engine at ``endpoint``, or at its own address."""

    def __init__(self, credentials: Credentials, *, endpoint: str | None = None) -> None:
        self._credentials = credentials
        self._options = {"api_endpoint": endpoint} if endpoint else None
        self.base = f"{(endpoint or f'https://{HOST}').rstrip('/')}/compute/v1"
        """What every URL begins with."""
        self._lock = Lock()

    @property
    def instances(self) -> InstancesClient:
        """For instances.  Making a client is not safe among threads, so one thread at a time."""
        with self._lock:
            return self._instances

    @property
    def operations(self) -> ZoneOperationsClient:
        """For the operations of a zone."""
        with self._lock:
            return self._operations

    @property
    def disks(self) -> DisksClient:
        """For disks."""
        with self._lock:
            return self._disks

    @cached_property
    def session(self) -> AuthorizedSession:
        """For lists."""
        return AuthorizedSession(  # type: ignore[no-untyped-call]
            self._credentials, default_host=HOST
        )

    @cached_property
    def _instances(self) -> InstancesClient:
        return InstancesClient(credentials=self._credentials, client_options=self._options)

    @cached_property
    def _operations(self) -> ZoneOperationsClient:
        return ZoneOperationsClient(credentials=self._credentials, client_options=self._options)

    @cached_property
    def _disks(self) -> DisksClient:
        return DisksClient(credentials=self._credentials, client_options=self._options)
