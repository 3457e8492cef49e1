"""An Azure machine's proof: its attested document, signed by Azure.

The document is what the machine reads at ``/metadata/attested/document``, the ``signature`` in it:
a signed message in base64 that holds the machine's ``vmId`` and until when it counts, some hours.
In that time a copied one could be shown again: that a proof counts once is the registration's
part.  The machine's name is not in it; its row knows the ``vmId``, and when.
Where to read next: ``azure_message`` (the format), ``azure_certificates`` (who may sign),
``google`` and ``aws`` (its twins).
"""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import TYPE_CHECKING

from cryptography.x509.oid import NameOID

from worker_manager.core.errors import ProofError, ProofUnavailableError
from worker_manager.identity.azure_message import MALFORMED, open_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.x509 import Certificate

    from worker_manager.core.model import Json, Worker
    from worker_manager.identity.azure_certificates import AzureAnchors

SIGNER = "metadata.azure.com"
"""The signer's common name, or what it ends in after a dot."""
LONGEST = 64 * 1024
"""Characters of a document; real ones have some 4,500."""


def verify_document(
    proof: Mapping[str, object], worker: Worker, *, anchors: AzureAnchors, now: datetime
) -> None:
    """Return if ``proof`` shows that its sender runs on the machine that ``worker`` is.

    ``proof`` has a ``document``.  Raises ``ProofError`` otherwise, with a message for our log only,
    and ``ProofUnavailableError`` if an issuer's certificate cannot be had, or the row does not
    know its ``vmId`` yet.  What needs nobody else is checked first.
    """
    message = open_message(_decoded(proof.get("document")))
    said = _parse(message.content)
    _require_current(said, now)
    known = worker.identity.get("vmId")
    if known is not None and not _is_same(said.get("vmId"), known):
        raise ProofError("the document is of another machine: vmId differs")
    try:
        name = _name_of(message.signer)
        anchors.verify(message.signer, message.others, name=name, now=now)
    except MALFORMED as error:
        raise ProofError("a certificate is not encoded as it should be") from error
    if known is None:
        raise ProofUnavailableError("the machine's vmId is not known yet")


def _decoded(document: object) -> bytes:
    if not isinstance(document, str) or not 0 < len(document) <= LONGEST:
        raise ProofError("document must be text, not empty and not long")
    try:
        return base64.b64decode("".join(document.split()), validate=True)
    except ValueError as error:
        raise ProofError("the document is not base64") from error


def _name_of(signer: Certificate) -> str:
    names = [str(name.value) for name in signer.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    match [name.lower() for name in names]:
        case [name] if name == SIGNER or name.endswith(f".{SIGNER}"):
            return name
        case _:
            raise ProofError("the document is not signed by Azure's metadata service")


def _parse(content: bytes) -> Json:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ProofError("the signed content is not JSON") from error
    if not isinstance(parsed, dict):
        raise ProofError("the signed content is not an object")
    return parsed


def _require_current(said: Json, now: datetime) -> None:
    stamp = said.get("timeStamp")
    expires = stamp.get("expiresOn") if isinstance(stamp, dict) else None
    try:
        until = datetime.strptime(str(expires), "%m/%d/%y %H:%M:%S %z")
    except ValueError as error:
        raise ProofError("the document does not say until when it counts") from error
    if now >= until:
        raise ProofError("the document has expired")


def _is_same(said: object, known: object) -> bool:
    """Ids of Azure come in either case."""
    return isinstance(said, str) and said.lower() == str(known).lower()
