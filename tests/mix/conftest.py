"""Samples on an in-memory table that a module's tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.session import Session
from moto import mock_aws

from tests.registry_tables import a_registry
from worker_manager.mix.load import Loads
from worker_manager.store.load_table import LoadTable
from worker_manager.store.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def loads() -> Iterator[Loads]:
    """Beside the rows of a registry."""
    with mock_aws():
        registry = a_registry(Tables.bind({}, Session(), "us-east-1"), "test-loads")
        yield Loads(LoadTable(registry.table))
