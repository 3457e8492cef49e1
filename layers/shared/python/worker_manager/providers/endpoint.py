"""Where a cloud is instead of at its own address: a simulated one on this machine, as a rule."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_local(endpoint: str | None) -> bool:
    """Whether an endpoint is on this machine, where credentials are not needed.

    ``ValueError`` for one elsewhere without TLS: a token is sent there.
    """
    if endpoint is None:
        return False
    url = urlsplit(endpoint)
    host = url.hostname or ""
    local = host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)
    if url.scheme != "https" and not (local and url.scheme == "http"):
        raise ValueError("WM_CLOUD_ENDPOINT without TLS must be on loopback: a token is sent there")
    return local


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
