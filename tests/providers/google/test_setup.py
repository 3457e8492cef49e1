"""Starting with a key, and refusing what is none."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.providers.google.wire import ACCOUNT, PROJECT, Answer
from worker_manager.core.errors import MalformedSecretError
from worker_manager.providers.google.setup import start
from worker_manager.providers.protocol import Setup

if TYPE_CHECKING:
    from tests.providers.google.wire import Wire

OPTIONS = {"project": PROJECT, "serviceAccountEmail": ACCOUNT}


@pytest.fixture(scope="module")
def key() -> dict[str, str]:
    private = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "a-key",
        "private_key": private.decode(),
        "client_email": "wm@a-project.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.example.com/token",
    }


def a_setup(secret: str, endpoint: str | None = None) -> Setup:
    return Setup(
        provider_id="google",
        deployment="wm-test",
        options=OPTIONS,
        secret=lambda: secret,
        endpoint=endpoint,
    )


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("spelt", [str, encoded])
def test_calls_carry_a_token_that_the_key_signs_itself(
    wire: Wire, key: dict[str, str], spelt: Any
) -> None:
    """No token server is asked: there is none at that address."""
    wire.says(Answer(200, {}))
    provider = start(a_setup(spelt(json.dumps(key)), wire.url))
    assert list(provider.instances(PROJECT)) == []

    (call,) = wire.calls
    assert call.authorization is not None
    claims = call.authorization.removeprefix("Bearer ").split(".")[1]
    told = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert told["iss"] == told["sub"] == key["client_email"]
    assert told["aud"] == "https://compute.googleapis.com/"


@pytest.mark.parametrize("secret", ["", "{}"])
def test_a_cloud_on_this_machine_needs_no_key(wire: Wire, secret: str) -> None:
    wire.says(Answer(200, {}))
    list(start(a_setup(secret, wire.url)).instances(PROJECT))

    assert wire.calls[0].authorization is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: "",
        lambda key: "{}",
        lambda key: "s3cret, but no JSON",
        lambda key: '["s3cret"]',
        lambda key: json.dumps({**key, "private_key": "s3cret"}),
        lambda key: json.dumps({**key, "private_key": ""}),
        lambda key: json.dumps({**key, "client_email": None}),
        lambda key: json.dumps({**key, "private_key": 1}),
    ],
)
def test_a_secret_that_is_no_key_is_refused_and_not_quoted(key: dict[str, str], spoil: Any) -> None:
    with pytest.raises(MalformedSecretError) as caught:
        start(a_setup(spoil(key)))
    assert "s3cret" not in str(caught.value)
    assert "BEGIN" not in str(caught.value)


def test_an_endpoint_elsewhere_needs_tls_and_a_key(key: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="without TLS"):
        start(a_setup(json.dumps(key), "http://192.0.2.1:80"))
    with pytest.raises(MalformedSecretError):
        start(a_setup("{}", "https://compute.example.com"))
    provider = start(a_setup(json.dumps(key), "https://compute.example.com"))
    assert provider._clients.base == "https://compute.example.com/compute/v1"
