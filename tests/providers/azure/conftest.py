"""Fixtures for tests that hold for both shapes of launch configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage


@pytest.fixture(params=["azure", "azure_by_template"])
def stage_of_both(request: pytest.FixtureRequest) -> AzureStage:
    chosen: AzureStage = request.getfixturevalue(str(request.param))
    return chosen
