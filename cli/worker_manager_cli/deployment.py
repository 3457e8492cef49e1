"""The deployment that is asked: where it is, who asks, and its methods by name.

A client is made of the reference that the service itself gives out, so that every method which
is documented can be called.  Where to read next: Taskcluster's client library, which makes it.
"""

from __future__ import annotations

from typing import Any

import requests
from taskcluster.client import createApiClient  # type: ignore[import-untyped]

TIMEOUT_SECONDS = 35
"""For one answer; the front door gives up after 29."""
ATTEMPTS = 3
"""At a call, where the other side is not there or not well."""


class UnreachableError(Exception):
    """The deployment does not answer, or not as one would."""


class _Session(requests.Session):
    """Waits for no answer for ever."""

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As ever, but not longer than ``TIMEOUT_SECONDS``."""
        kwargs.setdefault("timeout", TIMEOUT_SECONDS)
        return super().request(*args, **kwargs)


def client(service: str, options: dict[str, Any]) -> Any:
    """A client of one of its services, with a method for each of the service's.

    ``options`` are those of Taskcluster's clients, as from the environment.  Raises
    ``UnreachableError``.
    """
    if not options["rootUrl"]:
        raise UnreachableError("TASKCLUSTER_ROOT_URL does not say where the deployment is")
    root_url = options["rootUrl"].rstrip("/")
    session = _Session()
    try:
        answer = session.get(f"{root_url}/references/{service}/v1/api.json")
        answer.raise_for_status()
        made = createApiClient(service, {"reference": answer.json()})
    except (requests.RequestException, LookupError, TypeError) as error:
        raise UnreachableError(f"there is no {service} at {root_url}: {error}") from error
    return made({**options, "rootUrl": root_url, "maxRetries": ATTEMPTS - 1}, session=session)
