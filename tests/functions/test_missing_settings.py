"""What a function cannot do without is missed at once, and by its name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.events import a_proxy_event, a_scheduled_event, an_ec2_notice, an_sqs_event
from tests.functions.deployed import folder_of, function_names
from worker_manager.core.messages import ProvisionPool, Resume, ScanPool
from worker_manager.core.model import Location
from worker_manager.settings import MissingSettingError

if TYPE_CHECKING:
    from tests.functions.deployed import DeployedStage

NEEDED = {
    "provision-tick-aws": ("WM_PROVIDER", "WM_QUEUE_PROVISION", "WM_QUEUE_TICKS", "WM_ROOT_URL"),
    "provision-pool-aws": ("WM_PROVIDER", "WM_DEPLOYMENT", "WM_AUTH_SECRET"),
    "scan-tick-aws": ("WM_PROVIDER", "WM_DEPLOYMENT", "WM_QUEUE_TICKS"),
    "scan-pool-aws": ("WM_PROVIDER", "WM_BUS", "WM_ROOT_URL"),
    "advance-aws": ("WM_PROVIDER", "WM_DEPLOYMENT", "WM_ROOT_URL"),
    "sweep-aws": ("WM_PROVIDER", "WM_DEPLOYMENT", "WM_ROOT_URL"),
    "notices-aws": ("WM_PROVIDER", "WM_DEPLOYMENT", "WM_ROOT_URL"),
    "expire": ("WM_BUS", "WM_TABLE_REGISTRY"),
    "publish": ("WM_BUS", "WM_TABLE_REGISTRY"),
    "examine": ("WM_BUS", "WM_TABLE_REGISTRY", "WM_TABLE_ACTIONS", "WM_AUTH_SECRET"),
    "act": ("WM_BUS", "WM_TABLE_REGISTRY", "WM_TABLE_ACTIONS", "WM_QUEUE_ACTIONS"),
    "worker-gone": ("WM_TABLE_REGISTRY",),
    "pools-api": ("WM_ROOT_URL", "WM_BUS", "WM_AUTH_SECRET"),
    "workers-api": ("WM_ROOT_URL", "WM_BUS", "WM_AUTH_SECRET"),
    "registry-api": ("WM_ROOT_URL", "WM_TABLE_REGISTRY", "WM_BUS", "WM_AUTH_SECRET"),
    "queue-api": ("WM_ROOT_URL", "WM_TABLE_QUEUE", "WM_TABLE_REGISTRY", "WM_AUTH_SECRET"),
    "pulse": ("WM_PULSE_URL", "WM_PULSE_NAMESPACE", "WM_PULSE_SECRET", "WM_QUEUE_DEAD"),
}
"""What each function cannot do anything without; those of other clouds are no different."""


def a_fresh_event(name: str) -> dict[str, Any]:
    """One that a function has something to do for."""
    now = datetime.now(UTC)
    match name:
        case "provision-tick-aws" | "scan-tick-aws":
            return a_scheduled_event(now)
        case "provision-pool-aws":
            return an_sqs_event([ProvisionPool("proj-x/pool-1", "t-1", now).to_json()])
        case "scan-pool-aws":
            return an_sqs_event(
                [ScanPool("proj-x/pool-1", Location("us-east-1"), "t-1", now).to_json()]
            )
        case "advance-aws":
            return an_sqs_event([Resume("proj-x/pool-1", "t-1").to_json()])
        case "notices-aws":
            return an_sqs_event([an_ec2_notice("i-0123456789abcdef0", "terminated")])
        case "pulse" | "worker-gone":
            return an_sqs_event([])
        case "expire" | "publish" | "sweep-aws" | "examine" | "act":
            return {}
        case _:
            return a_proxy_event()


def test_the_needs_of_every_function_are_known() -> None:
    assert {folder_of(name) for name in NEEDED} == {folder_of(name) for name in function_names()}


@pytest.mark.parametrize(
    ("name", "variable"), [(name, variable) for name in NEEDED for variable in NEEDED[name]]
)
def test_a_setting_that_is_missing_fails_the_call_with_its_name(
    shared: DeployedStage, name: str, variable: str
) -> None:
    with pytest.raises(MissingSettingError, match=variable):
        shared.call(name, a_fresh_event(name), **{variable: None})
