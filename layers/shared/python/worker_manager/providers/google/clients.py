"""The SDK's clients, and the session by which lists are read.

Lists are read as JSON through a session of google-auth with the same credentials: the SDK's
messages take ten times the processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.api_core.timeout import ConstantTimeout
from google.auth.transport.requests import AuthorizedSession
from google.cloud.compute_v1.services.disks import DisksClient
from google.cloud.compute_v1.services.instances import InstancesClient
from google.cloud.compute_v1.services.zone_operations import ZoneOperationsClient

from worker_manager.providers.visit import CONNECT_TIMEOUT

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

    from worker_manager.providers.visit import Visit

HOST = "compute.googleapis.com"
MAX_CONNECTIONS = 10
"""As many as a session of the SDK keeps."""


class Clients:
    """Clients of Compute Engine at ``endpoint``, or at its own address; made in milliseconds."""

    def __init__(self, credentials: Credentials, *, endpoint: str | None = None) -> None:
        options = {"api_endpoint": endpoint} if endpoint else None
        self.instances = InstancesClient(credentials=credentials, client_options=options)
        self.operations = ZoneOperationsClient(credentials=credentials, client_options=options)
        self.disks = DisksClient(credentials=credentials, client_options=options)
        self.session = AuthorizedSession(  # type: ignore[no-untyped-call]
            credentials, default_host=HOST
        )
        self.base = f"{(endpoint or f'https://{HOST}').rstrip('/')}/compute/v1"
        """What the URL of every list begins with."""


def time_left(visit: Visit) -> ConstantTimeout:
    """The timeouts of a call that begins now; ``ThrottledError`` if there is too little time."""
    read = visit.timeout().total_seconds()
    return ConstantTimeout(  # type: ignore[no-untyped-call]
        (CONNECT_TIMEOUT.total_seconds(), read)
    )
