"""Speaking to Azure Resource Manager: the SDK's clients, with nothing in them that waits.

By default the SDK repeats refused calls after sleeping, polls operations in threads of its own,
and registers resource providers in an endless loop.  Whoever called knows better whether repeating
is wise, and a sleeping Lambda costs what a working one does; so the pipeline here has none of it.
Bodies are never logged: they hold passwords.

Single resources are handled by the SDK's own operations; lists and template deployments by
``send_request``, which reads a list at a fifteenth of the processor time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from azure.core.exceptions import DecodeError, HttpResponseError
from azure.core.pipeline.policies import RequestIdPolicy, SansIOHTTPPolicy, UserAgentPolicy
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy
from requests import Session
from requests.adapters import HTTPAdapter

from worker_manager.providers.visit import CONNECT_TIMEOUT, READ_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from azure.core.credentials import TokenCredential
    from azure.core.rest import HttpResponse
    from azure.mgmt.network import NetworkManagementClient

    from worker_manager.core.model import Json
    from worker_manager.providers.visit import TimeLeft

PUBLIC_CLOUD = "https://management.azure.com"
SCOPE = f"{PUBLIC_CLOUD}/.default"
MAX_CONNECTIONS = 32
"""The transport serves this many threads without opening connections anew."""

COMPUTE_API = "2024-07-01"
NETWORK_API = "2024-05-01"
DISKS_API = "2024-03-02"
RESOURCES_API = "2021-04-01"
"""Versions of the APIs that are spoken without the SDK's operations."""


class _AllowHttp(SansIOHTTPPolicy[Any, Any]):
    """Lets a token travel without TLS, as it may on loopback."""

    def on_request(self, request: Any) -> None:
        request.context.options.setdefault("enforce_https", False)


@dataclass(slots=True)
class Arm:
    """One subscription.  ``endpoint`` is for a simulated Azure on loopback; ``None`` is the real.

    No call outlasts ``CONNECT_TIMEOUT`` and ``read_timeout`` (per read) together.
    """

    subscription: str
    credential: TokenCredential
    endpoint: str | None = None
    read_timeout: timedelta = READ_TIMEOUT
    compute: ComputeManagementClient = field(init=False)
    _options: dict[str, Any] = field(init=False, repr=False)
    _network: NetworkManagementClient | None = field(init=False, default=None)
    _lock: Lock = field(init=False, default_factory=Lock)

    def __post_init__(self) -> None:
        """Build the pipeline once; its connections serve both clients."""
        session = Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=MAX_CONNECTIONS, max_retries=0))
        self._options = {
            "base_url": self.endpoint or PUBLIC_CLOUD,
            "transport": RequestsTransport(
                session=session,
                connection_timeout=CONNECT_TIMEOUT.total_seconds(),
                read_timeout=self.read_timeout.total_seconds(),
            ),
            "policies": [
                RequestIdPolicy(),
                UserAgentPolicy("worker-manager", user_agent_use_env=False),
                *([_AllowHttp()] if self.endpoint else []),
                ARMChallengeAuthenticationPolicy(self.credential, SCOPE),
            ],
        }
        self.compute = ComputeManagementClient(self.credential, self.subscription, **self._options)

    def sign_in(self) -> None:
        """Have a token, so that no call has to wait for one; raises what the credential raises."""
        self.credential.get_token(SCOPE)

    @property
    def network(self) -> NetworkManagementClient:
        """The client for interfaces and addresses, imported when it is first needed."""
        with self._lock:
            if self._network is None:
                from azure.mgmt.network import NetworkManagementClient  # noqa: PLC0415

                self._network = NetworkManagementClient(
                    self.credential, self.subscription, **self._options
                )
            return self._network

    def send(
        self,
        method: str,
        path: str,
        *,
        timeout: timedelta,
        version: str = RESOURCES_API,
        params: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> HttpResponse:
        """One request below the subscription; the SDK's ``HttpResponseError`` if it is refused."""
        request = HttpRequest(
            method,
            f"/subscriptions/{self.subscription}{path}",
            params={"api-version": version, **(params or {})},
            json=body,
        )
        return self._sent(request, timeout)

    def pages(
        self,
        path: str,
        *,
        timeout: TimeLeft,
        version: str = RESOURCES_API,
        params: Mapping[str, str] | None = None,
    ) -> Iterator[list[Json]]:
        """A list below the subscription, page by page, to its end or the SDK's error.

        ``timeout`` is asked before each page.
        """
        answer = read(self.send("GET", path, timeout=timeout(), version=version, params=params))
        while True:
            yield answer["value"]
            if not answer.get("nextLink"):
                return
            answer = read(self._sent(HttpRequest("GET", answer["nextLink"]), timeout()))

    def _sent(self, request: HttpRequest, timeout: timedelta) -> HttpResponse:
        response = self.compute.send_request(request, read_timeout=timeout.total_seconds())
        if response.status_code >= 400:
            raise HttpResponseError(response=response)
        return response


def read(response: HttpResponse) -> Json:
    """The JSON object of an answer; the SDK's ``DecodeError`` for anything else."""
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise DecodeError("the answer is no JSON object", response=response)
    return answer


def resource_group_of(resource_id: str) -> str:
    """The resource group in a resource's id, in lower case: Azure writes it as it likes."""
    return resource_id.lower().partition("/resourcegroups/")[2].partition("/")[0]


def name_of(resource_id: str) -> str:
    """The last part of a resource's id, as it is written."""
    return resource_id.rpartition("/")[2]


def group_path(resource_group: str) -> str:
    """Path of a resource group below its subscription."""
    return f"/resourcegroups/{resource_group}"


def deployment_path(resource_group: str, name: str = "") -> str:
    """Path of one template deployment, or of all of a resource group."""
    path = f"{group_path(resource_group)}/providers/Microsoft.Resources/deployments"
    return f"{path}/{name}" if name else path


def raw(answer: Any, _model: object, _headers: object) -> Any:
    """For ``cls`` of the SDK's operations: the JSON as it came, instead of a model of it."""
    return answer.http_response.json()
