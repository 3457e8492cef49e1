"""Where a token may be sent."""

from __future__ import annotations

import pytest

from worker_manager.providers.endpoint import is_local


@pytest.mark.parametrize(
    ("endpoint", "local"),
    [
        (None, False),
        ("http://127.0.0.1:8080", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8080", True),
        ("http://localhost:8080/", True),
        ("https://localhost", True),
        ("https://cloud.example.com", False),
    ],
)
def test_an_endpoint_is_on_this_machine_or_elsewhere(endpoint: str | None, local: bool) -> None:
    assert is_local(endpoint) is local


@pytest.mark.parametrize(
    "endpoint",
    ["http://10.0.0.1", "http://127.0.0.1.example.com", "127.0.0.1", "ftp://localhost", ""],
)
def test_an_endpoint_elsewhere_needs_tls(endpoint: str) -> None:
    with pytest.raises(ValueError, match="WM_CLOUD_ENDPOINT"):
        is_local(endpoint)
