"""The deployed system on the embedded emulator, one for all journeys, its clock stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.local.stage import LocalStage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStage]:
    with LocalStage(folder=tmp_path_factory.mktemp("stage"), schedules=False) as running:
        yield running
