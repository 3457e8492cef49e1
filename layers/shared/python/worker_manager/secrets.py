"""Secrets, read once per container."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_secret(client: Any, secret_id: str) -> str:
    """The text of a secret; ``client`` is a boto3 client for Secrets Manager."""
    text: str = client.get_secret_value(SecretId=secret_id)["SecretString"]
    return text


def access_key(text: str) -> Mapping[str, str] | None:
    """The AWS access key in a provider's secret, as boto3 takes it.

    ``{"accessKeyId", "secretAccessKey"}`` as in the reference's provider configuration; ``None``
    for anything else: then the function's own role is used.
    """
    try:
        given = json.loads(text)
    except ValueError:
        return None
    if not isinstance(given, dict) or "accessKeyId" not in given:
        return None
    return {
        "aws_access_key_id": given["accessKeyId"],
        "aws_secret_access_key": given["secretAccessKey"],
    }
