"""Issuers' certificates, downloaded from where a certificate says they are, if that is allowed.

The address comes from whoever wants to register, so only known hosts of known certificate
authorities are asked.  What comes back is taken for nothing yet: see ``azure_certificates``.
Where to read next: ``downloads``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from cryptography.x509 import (
    AuthorityInformationAccess,
    ExtensionNotFound,
    UniformResourceIdentifier,
    load_der_x509_certificate,
)
from cryptography.x509.oid import AuthorityInformationAccessOID

from worker_manager.core.errors import ProofUnavailableError
from worker_manager.identity.downloads import fetch

if TYPE_CHECKING:
    from collections.abc import Collection

    from cryptography.x509 import Certificate

    from worker_manager.identity.downloads import Fetch

HOSTS = frozenset(
    {
        "cacerts.digicert.com",
        "cacerts.digicert.cn",
        "cacerts.geotrust.com",
        "caissuers.microsoft.com",
    }
)
"""Of authorities that issue, or issued, what Azure signs attested documents with."""
MICROSOFT, MICROSOFT_PATH = "www.microsoft.com", "/pkiops/certs/"
"""A host with much else on it, and where its certificates are."""

_PORTS = (None, 80, 443)
_SECONDS = 5
_MOST_BYTES = 64 * 1024


class IssuerDownloads:
    """Downloads issuers; ``further_hosts`` (``host:port``) are allowed too, for local stages."""

    def __init__(
        self, *, further_hosts: Collection[str] = (), fetching: Fetch | None = None
    ) -> None:
        self._further = frozenset(further_hosts)
        self._fetch = fetching or partial(fetch, seconds=_SECONDS, most_bytes=_MOST_BYTES)

    def addresses(self, certificate: Certificate) -> list[str]:
        """Where a certificate says its issuer's is, as far as that may be asked."""
        return [url for url in _issuer_urls(certificate) if self._is_allowed(url)]

    def download(self, url: str) -> Certificate:
        """The certificate at an address; ``ProofUnavailableError`` if it cannot be had."""
        body = self._fetch(url).body
        try:
            return load_der_x509_certificate(body)
        except ValueError as error:
            raise ProofUnavailableError(f"{url} is no certificate") from error

    def _is_allowed(self, url: str) -> bool:
        try:
            split = urlsplit(url)
            port = split.port
        except ValueError:
            return False
        if split.scheme not in ("http", "https") or "@" in split.netloc:
            return False
        if split.netloc in self._further:
            return True
        if port not in _PORTS:
            return False
        if split.hostname == MICROSOFT:
            path = unquote(split.path)
            return path.startswith(MICROSOFT_PATH) and ".." not in path.split("/")
        return split.hostname in HOSTS


def _issuer_urls(certificate: Certificate) -> list[str]:
    try:
        access = certificate.extensions.get_extension_for_class(AuthorityInformationAccess).value
    except (ExtensionNotFound, ValueError):
        return []
    return [
        described.access_location.value
        for described in access
        if described.access_method == AuthorityInformationAccessOID.CA_ISSUERS
        and isinstance(described.access_location, UniformResourceIdentifier)
    ]
