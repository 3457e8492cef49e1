"""Fixtures of the API's tests; what they give is in ``world``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.api.world import POOL_PATH, ROOT_URL, Api, Clock, a_definition

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api(tables: Tables, clock: Clock) -> Api:
    return Api(tables, clock, ROOT_URL)


@pytest.fixture
def pool(api: Api) -> Api:
    """The API with an AWS pool, whose creation is forgotten by bus and queues."""
    api.ok("PUT", POOL_PATH, a_definition())
    api.bus.events.clear()
    api.provision.messages.clear()
    return api
