from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from tests.functions.deployed import DeployedStage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def deployed() -> Iterator[DeployedStage]:
    """What a deployment makes, without functions."""
    with mock_aws():
        yield DeployedStage({})
