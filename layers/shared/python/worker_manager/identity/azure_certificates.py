"""Whether Azure signed: from a signer's certificate up to a root that we brought along.

Azure sends the signer's certificate alone; what lies between it and a root is downloaded once and
kept by the container *beside* the roots, never among them.  Nothing is taken on its name: every
link is a signature, and the whole path is checked again by the library (purpose, constraints,
validity, host name) before anything of it is kept.
Where to read next: ``azure_downloads`` (from where), ``azure`` (what for).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import DNSName, load_pem_x509_certificates
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from worker_manager.core.errors import ProofError, ProofUnavailableError
from worker_manager.identity.azure_downloads import IssuerDownloads
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cryptography.x509 import Certificate

MOST_BETWEEN = 2
"""Certificates between a signer's and a root; Azure has one, two where a root is cross-signed."""
MOST_DOWNLOADS = 3
"""For one proof: at five seconds each, a machine still gets an answer from the gateway."""
MOST_KEPT = 16
"""Issuers that a container keeps; Azure signs by some ten."""

_BUNDLED = Path(__file__).with_name("azure_roots")


def bundled_roots() -> tuple[Certificate, ...]:
    """The roots to which Azure's signers lead.

    Sources: Microsoft's page of Azure's certificate authorities names them; DigiCert Global Root G2
    and Microsoft RSA Root Certificate Authority 2017 are among Mozilla's (``certifi``), Microsoft
    TLS RSA Root G2 is in Microsoft's repository of certificates (pkiops/certs).
    """
    return load_roots(path.read_text("ascii") for path in sorted(_BUNDLED.glob("*.pem")))


def load_roots(texts: Iterable[str]) -> tuple[Certificate, ...]:
    """Read certificates from PEM texts; ``ValueError`` for a text without one."""
    return tuple(
        certificate for text in texts for certificate in load_pem_x509_certificates(text.encode())
    )


class AzureAnchors:
    """Roots that are trusted, and issuers that were proven to be theirs."""

    def __init__(
        self, roots: Sequence[Certificate], downloads: IssuerDownloads | None = None
    ) -> None:
        self._roots = tuple(roots)
        self._store = Store(list(roots))
        self._downloads = downloads or IssuerDownloads()
        self._kept: dict[Certificate, None] = {}

    @property
    def roots(self) -> tuple[Certificate, ...]:
        """What is trusted; it never changes."""
        return self._roots

    @property
    def kept(self) -> tuple[Certificate, ...]:
        """The issuers learned so far, the latest last."""
        return tuple(self._kept)

    def verify(
        self, signer: Certificate, others: Sequence[Certificate], *, name: str, now: datetime
    ) -> None:
        """Return if a root stands behind ``signer``, who is to be ``name``.

        ``others`` came with the message and prove nothing by themselves.  Raises ``ProofError``,
        or ``ProofUnavailableError`` if an issuer could not be downloaded.
        """
        between = [*self._kept, *others]
        between += self._missing(signer, between, now)
        try:
            verifier = (
                PolicyBuilder()
                .store(self._store)
                .time(now)
                .max_chain_depth(MOST_BETWEEN)
                .build_server_verifier(DNSName(name))
            )
            path = verifier.verify(signer, between)
        except (VerificationError, ValueError) as error:
            raise ProofError(f"no root stands behind the signer: {error}") from error
        self._keep(path[1:-1])

    def _missing(
        self, signer: Certificate, known: Sequence[Certificate], now: datetime
    ) -> list[Certificate]:
        """The issuers on the way from ``signer`` to a root that are not known, downloaded."""
        downloaded: list[Certificate] = []
        left = MOST_DOWNLOADS
        current = signer
        for _ in range(MOST_BETWEEN + 1):
            if _issuer(current, self._roots, now) is not None:
                break
            issuer = _issuer(current, known, now)
            if issuer is None:
                urls = self._downloads.addresses(current)[:left]
                left -= len(urls)
                issuer = self._downloaded(current, urls, now)
                downloaded.append(issuer)
            current = issuer
        return downloaded

    def _downloaded(
        self, certificate: Certificate, urls: Sequence[str], now: datetime
    ) -> Certificate:
        """The first of the addresses that has the issuer of ``certificate``."""
        trouble: ProofUnavailableError | None = None
        for url in urls:
            try:
                found = self._downloads.download(url)
            except ProofUnavailableError as error:
                logger.warning("issuer not downloaded", url=url, why=str(error))
                trouble = error
                continue
            if _issuer(certificate, [found], now) is not None:
                return found
        if trouble is not None:
            raise trouble
        raise ProofError("the signer's issuer is not known, and not where it may be looked for")

    def _keep(self, proven: Iterable[Certificate]) -> None:
        for certificate in proven:
            if certificate in self._kept:
                continue
            while len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[certificate] = None
            logger.info(
                "issuer learned",
                subject=certificate.subject.rfc4514_string(),
                fingerprint=certificate.fingerprint(SHA256()).hex(),
            )


def _issuer(
    certificate: Certificate, candidates: Iterable[Certificate], now: datetime
) -> Certificate | None:
    """Which of the candidates signed ``certificate`` and is valid."""
    for candidate in candidates:
        is_current = candidate.not_valid_before_utc <= now <= candidate.not_valid_after_utc
        if is_current and _has_issued(candidate, certificate):
            return candidate
    return None


def _has_issued(candidate: Certificate, certificate: Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(candidate)
    except (InvalidSignature, UnsupportedAlgorithm, TypeError, ValueError):
        return False
    return True
