"""Provider types by name."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from worker_manager.providers.registry import CLOUDS, load_cloud


@pytest.mark.parametrize("provider_type", sorted(CLOUDS))
def test_every_cloud_has_a_module_that_starts_it(provider_type: str) -> None:
    """That it loads no other cloud's SDK is tested with the functions that load it."""
    module, _, name = CLOUDS[provider_type].partition(":")
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    assert f"def {name}(" in Path(found.origin).read_text()


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
