"""One scripted server for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.providers.google.wire import Wire, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def _server() -> Iterator[Wire]:
    with serving() as wire:
        yield wire


@pytest.fixture
def wire(_server: Wire) -> Wire:
    _server.reset()
    return _server
