"""The stack, synthesised once with folders that stand in for the code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.app import synthesise
from infra.settings import STAGES, PulseSettings, StageSettings
from infra.stack import Code

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLDERS = (
    "pools_api",
    "workers_api",
    "queue_api",
    "registry_api",
    "observe",
    "examine",
    "act",
    "worker_gone",
    "provision_tick",
    "provision_pool",
    "scan_tick",
    "scan_pool",
    "advance",
    "sweep",
    "notices",
    "expire",
    "publish",
    "pulse",
)


@pytest.fixture(scope="session")
def stub_code(tmp_path_factory: pytest.TempPathFactory) -> Code:
    top = tmp_path_factory.mktemp("code")
    layers = ("shared", "runtime", "amqp", "azure", "google")
    for folder in (*(f"functions/{name}" for name in FOLDERS), *layers):
        (top / folder).mkdir(parents=True)
        (top / folder / "handler.py").write_text(f"# {folder}\n")
    return Code(
        functions=top / "functions",
        shared_layer=top / "shared",
        runtime_layer=top / "runtime",
        pulse_layer=top / "amqp",
        cloud_layers={cloud: top / cloud for cloud in ("azure", "google")},
        hash_of=lambda folder: None,
    )


@pytest.fixture(scope="session")
def template_of(
    stub_code: Code, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[StageSettings], dict[str, Any]]:
    """The stage's template, with those of the stacks inside it under ``Inner``."""

    def synthesised(settings: StageSettings) -> dict[str, Any]:
        outdir: Path = tmp_path_factory.mktemp("cdk.out")
        template_file = synthesise(settings, code=stub_code, outdir=outdir, in_place=True)
        template: dict[str, Any] = json.loads(template_file.read_text())
        inner = [json.loads(file.read_text()) for file in outdir.glob("*.nested.template.json")]
        return {**template, "Inner": inner}

    return synthesised


@pytest.fixture(scope="session")
def local_template(template_of: Callable[[StageSettings], dict[str, Any]]) -> dict[str, Any]:
    return template_of(STAGES["local"])


@pytest.fixture(scope="session")
def full_template(template_of: Callable[[StageSettings], dict[str, Any]]) -> dict[str, Any]:
    """The local stage with all that is optional."""
    return template_of(replace(STAGES["local"], pulse=PulseSettings(url="amqps://pulse.example")))


@pytest.fixture(scope="session")
def prod_template(template_of: Callable[[StageSettings], dict[str, Any]]) -> dict[str, Any]:
    settings = STAGES["prod"]
    aws, *others = settings.providers
    aws = replace(aws, instance_roles=("arn:aws:iam::123456789012:role/worker",))
    return template_of(
        replace(settings, providers=(aws, *others), certificate_arn="arn:aws:acm:::certificate/1")
    )


@pytest.fixture
def template(local_template: dict[str, Any]) -> dict[str, Any]:
    return local_template
