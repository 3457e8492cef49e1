"""Provider types by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from worker_manager.providers.aws.provider import AwsProvider
from worker_manager.providers.registry import CLOUDS, load_cloud


def test_aws_is_a_cloud() -> None:
    assert load_cloud("aws") is AwsProvider


def test_every_cloud_can_be_loaded() -> None:
    for provider_type in CLOUDS:
        assert callable(load_cloud(provider_type))


def test_static_is_a_provider_type_without_a_cloud() -> None:
    with pytest.raises(LookupError, match="static"):
        load_cloud("static")


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"'abacus'.*aws"):
        load_cloud("abacus")


def test_knowing_the_types_loads_no_cloud_sdk() -> None:
    program = (
        "import sys, worker_manager.providers.registry as _;"
        "sys.exit(any(name.partition('.')[0] in ('boto3', 'botocore') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
