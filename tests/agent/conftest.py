"""One rack for all tests of a module: its servers take longer to start than its machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.local.racks.rack import Rack

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    with Rack(["m-1", "m-2"], boot_seconds=0.25) as rack:
        yield rack
