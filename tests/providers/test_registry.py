"""Provider types by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from worker_manager.providers.registry import CLOUDS, load_cloud

SDKS = {"aws": "boto3", "azure": "azure.mgmt.compute", "google": "google.cloud.compute_v1"}


@pytest.mark.parametrize("provider_type", sorted(CLOUDS))
def test_a_cloud_is_loaded_without_the_sdks_of_the_others(provider_type: str) -> None:
    program = (
        "import sys; from worker_manager.providers.registry import load_cloud;"
        f"start = load_cloud({provider_type!r}); assert callable(start);"
        "print(*sorted(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()
    others = {sdk for name, sdk in SDKS.items() if name != provider_type}
    assert others.isdisjoint(loaded)


def test_static_is_a_provider_type_without_a_cloud() -> None:
    with pytest.raises(LookupError, match="static"):
        load_cloud("static")


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"'abacus'.*aws"):
        load_cloud("abacus")


def test_knowing_the_types_loads_no_cloud_sdk() -> None:
    program = (
        "import sys, worker_manager.providers.registry as _;"
        "sdks = ('boto3', 'botocore', 'google', 'azure');"
        "sys.exit(any(name.partition('.')[0] in sdks for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
