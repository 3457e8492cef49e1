"""Starting the provider of EC2: with a key of its own, or with our own account's role.

Where to read next: ``provider``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3

from worker_manager.providers.aws.provider import READ_TIMEOUT, AwsProvider
from worker_manager.secrets import access_key

if TYPE_CHECKING:
    from worker_manager.providers.protocol import Setup


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
