"""What a machine is told at birth."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.providers.orders import OREGON
from worker_manager.providers.aws.user_data import (
    MAX_USER_DATA_BYTES,
    user_data,
    user_data_size_error,
)

if TYPE_CHECKING:
    from worker_manager.core.model import Json


def written(body: Json) -> bytes:
    return user_data(
        body,
        OREGON,
        root_url="https://tc.example.com",
        pool_id="proj/linux",
        provider_id="aws",
        launch_config_id="lc-1",
    )


def test_user_data_is_exactly_what_a_worker_runner_reads() -> None:
    body = {"region": OREGON, "workerConfig": {"a": 1.0}, "additionalUserData": {"motd": "grüße"}}
    assert json.loads(written(body)) == {
        "motd": "grüße",
        "rootUrl": "https://tc.example.com",
        "workerPoolId": "proj/linux",
        "providerId": "aws",
        "workerGroup": "us-west-2",
        "launchConfigId": "lc-1",
        "workerConfig": {"a": 1.0},
    }


def test_additional_user_data_cannot_displace_what_the_worker_needs() -> None:
    body = {"additionalUserData": {"rootUrl": "https://evil", "launchConfigId": "lc-evil"}}
    told = json.loads(written(body))
    assert told["rootUrl"] == "https://tc.example.com"
    assert told["launchConfigId"] == "lc-1"


def test_a_launch_config_without_worker_config_gives_an_empty_one() -> None:
    assert json.loads(written({}))["workerConfig"] == {}


def test_the_order_of_keys_in_the_launch_config_does_not_change_a_byte() -> None:
    one = written({"workerConfig": {"a": 1, "b": 2}})
    assert one == written({"workerConfig": {"b": 2, "a": 1}})


def test_user_data_of_exactly_the_limit_fits_and_one_byte_more_does_not() -> None:
    """B35: the size is checked when the pool is written, in raw bytes."""
    spare = MAX_USER_DATA_BYTES - len(written({"additionalUserData": {"pad": ""}}))
    fits = written({"additionalUserData": {"pad": "x" * spare}})
    assert len(fits) == MAX_USER_DATA_BYTES
    assert user_data_size_error(fits) is None
    too_long = user_data_size_error(written({"additionalUserData": {"pad": "x" * (spare + 1)}}))
    assert too_long is not None
    assert "16385 bytes, 1 more" in too_long
    assert "xxx" not in too_long


def test_the_size_can_be_checked_without_a_cloud_sdk() -> None:
    program = (
        "import sys, worker_manager.providers.aws.user_data as _;"
        "sys.exit(any(name.partition('.')[0] in ('boto3', 'botocore') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
