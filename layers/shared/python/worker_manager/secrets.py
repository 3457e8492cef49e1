"""Secrets, read once per container."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


def read_secret(client: Any, secret_id: str) -> str:
    """The text of a secret; ``client`` is a boto3 client for Secrets Manager."""
    text: str = client.get_secret_value(SecretId=secret_id)["SecretString"]
    return text


class MalformedSecretError(ValueError):
    """A secret is not what it must be; the message says what is missing, and quotes nothing."""


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


@dataclass(frozen=True, slots=True)
class Login:
    """Who we are to a message broker."""

    username: str
    password: str = field(repr=False)


def login(text: str) -> Login:
    """The ``{"username", "password"}`` in a broker's secret; ``ValueError`` for anything else."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given.get("username") or not given.get("password"):
        raise ValueError("the broker's secret must be JSON with username and password")
    return Login(str(given["username"]), str(given["password"]))
