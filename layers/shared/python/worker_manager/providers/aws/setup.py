"""Starting the provider of EC2: with a key of its own, or with our own account's role.

Where to read next: ``provider``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3

from worker_manager.core.errors import MalformedSecretError
from worker_manager.providers.aws.provider import AwsProvider
from worker_manager.providers.visit import READ_TIMEOUT

if TYPE_CHECKING:
    from worker_manager.providers.protocol import Setup


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An AWS access key."""

    key_id: str
    secret: str = field(repr=False)


def access_key(text: str) -> AccessKey | None:
    """The AWS access key in a provider's secret.

    ``{"accessKeyId", "secretAccessKey"}`` as in the reference's provider configuration; ``None``
    for anything else: then the function's own role is used.  ``MalformedSecretError`` for half a
    key.
    """
    try:
        given = json.loads(text)
    except ValueError:
        return None
    if not isinstance(given, dict) or "accessKeyId" not in given:
        return None
    if not given.get("secretAccessKey"):
        raise MalformedSecretError("the secret has an accessKeyId but no secretAccessKey")
    return AccessKey(given["accessKeyId"], given["secretAccessKey"])


def start(setup: Setup) -> AwsProvider:
    """A provider of EC2; ``MalformedSecretError`` for half an access key."""
    key = access_key(setup.secret())
    session = setup.session or boto3.Session()
    if key is not None:
        session = boto3.Session(
            aws_access_key_id=key.key_id,
            aws_secret_access_key=key.secret,
            region_name=session.region_name,
        )
    return AwsProvider(
        provider_id=setup.provider_id,
        deployment=setup.deployment,
        session=session,
        read_timeout=setup.read_timeout or READ_TIMEOUT,
    )
