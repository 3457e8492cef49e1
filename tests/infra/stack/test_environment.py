"""What functions are told of, against what the library reads."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import worker_manager.settings
from infra.settings import STAGES, StageSettings
from tests.infra.stack.reading import environment, names
from worker_manager.core.timing import Timing
from worker_manager.settings import TABLE_VARIABLES, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]

APIS = ("pools-api", "workers-api", "registry-api", "queue-api")
OURS = re.compile(r"WM_[A-Z0-9_]+")


def test_functions_are_told_only_what_the_library_reads(local_template: Template) -> None:
    library = Path(worker_manager.settings.__file__).parent
    read = {
        variable
        for source in library.rglob("*.py")
        for variable in OURS.findall(source.read_text())
    }
    told = {
        variable
        for name in names(local_template)
        for variable in environment(local_template, name)
        if variable.startswith("WM_")
    }

    assert told <= read


def test_every_table_has_the_variable_that_the_library_knows(local_template: Template) -> None:
    told = {
        variable
        for name in names(local_template)
        for variable in environment(local_template, name)
        if variable.startswith("WM_TABLE_")
    }

    assert told == set(TABLE_VARIABLES.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("provision-tick-aws", {"WM_QUEUE_TICKS", "WM_QUEUE_PROVISION", "WM_TABLE_PROVIDERS"}),
        ("scan-tick-aws", {"WM_QUEUE_TICKS", "WM_QUEUE_SCAN", "WM_BUCKET", "WM_CLOUD_SECRET"}),
        (
            "provision-pool-aws",
            {"WM_QUEUE_ROOT_URL", "WM_AUTH_SECRET", "WM_QUEUE_ADVANCE"},
        ),
        ("scan-pool-aws", {"WM_QUEUE_ROOT_URL", "WM_AUTH_SECRET", "WM_BUCKET"}),
        ("advance-aws", {"WM_QUEUE_ADVANCE", "WM_QUEUE_PROVISION", "WM_CLOUD_SECRET"}),
        ("advance-azure", {"WM_TABLE_ERRORS", "WM_BUS", "WM_CLOUD_ENDPOINT"}),
        ("sweep-google", {"WM_TABLE_WORKERS", "WM_TABLE_PROVIDERS", "WM_CLOUD_SECRET"}),
        ("notices-aws", {"WM_QUEUE_PROVISION", "WM_CLOUD_SECRET", "WM_BUS"}),
        ("pools-api", {"WM_QUEUES", "WM_AUTH_SECRET", "WM_BUS", "WM_QUEUE_ROOT_URL"}),
        ("workers-api", {"WM_QUEUES", "WM_AUTH_SECRET", "WM_BUS", "WM_TRUSTED_EC2_KEYS"}),
        (
            "queue-api",
            {"WM_TABLE_QUEUE", "WM_BUS", "WM_CLAIM_HOLD_SECONDS", "WM_ACTION_HOSTS"},
        ),
        ("registry-api", {"WM_TABLE_REGISTRY", "WM_BUS", "WM_QUEUE_BACKEND", "WM_ACTION_HOSTS"}),
        ("worker-gone", {"WM_TABLE_REGISTRY", "WM_TABLE_QUEUE"}),
        ("expire", {"WM_TABLE_WORKERS", "WM_TABLE_REGISTRY", "WM_BUS"}),
        ("publish", {"WM_TABLE_PROVIDERS", "WM_TABLE_REGISTRY", "WM_BUS"}),
    ],
)
def test_a_function_is_told_what_its_job_needs(
    local_template: Template, name: str, expected: set[str]
) -> None:
    assert expected <= environment(local_template, name).keys()


def test_secrets_are_told_only_to_those_who_open_them(local_template: Template) -> None:
    told = {
        name: {
            variable
            for variable in environment(local_template, name)
            if variable.endswith("_SECRET")
        }
        for name in names(local_template)
    }

    for name in ("provision-tick-aws", "expire", "publish", "worker-gone"):
        assert told[name] == set()
    for name in APIS:
        assert told[name] == {"WM_AUTH_SECRET"}
    assert told["scan-tick-aws"] == told["advance-aws"] == {"WM_CLOUD_SECRET"}


def test_loop_functions_know_their_provider(local_template: Template) -> None:
    for name in names(local_template):
        suffix = name.rpartition("-")[2]
        assert environment(local_template, name).get("WM_PROVIDER") == (
            suffix if suffix in ("aws", "azure", "google") else None
        )


def test_only_functions_of_simulated_clouds_are_told_where_theirs_is(
    local_template: Template,
) -> None:
    told = {
        name: variables["WM_CLOUD_ENDPOINT"]["Ref"]
        for name in names(local_template)
        if "WM_CLOUD_ENDPOINT" in (variables := environment(local_template, name))
    }
    in_cloud = ("provision-pool", "scan-tick", "scan-pool", "advance", "sweep")

    assert told == {
        f"{name}-{cloud}": f"{cloud.title()}Endpoint"
        for name in in_cloud
        for cloud in ("azure", "google")
    }
    assert not any(local_template["Parameters"][name]["Default"] for name in told.values())


def test_the_providers_read_back_as_the_library_reads_them(local_template: Template) -> None:
    variables = environment(local_template, "pools-api")

    providers = Settings.of({"WM_PROVIDERS": variables["WM_PROVIDERS"]}).providers

    assert {name: found.provider_type for name, found in providers.items()} == {
        "aws": "aws",
        "azure": "azure",
        "google": "google",
        "static": "static",
    }
    for given in STAGES["local"].providers:
        assert providers[given.provider_id].options == given.options


def test_parameters_default_to_what_the_library_accepts(
    local_template: Template, prod_template: Template
) -> None:
    for template in (local_template, prod_template):
        given = {name: found["Default"] for name, found in template["Parameters"].items()}
        settings = Settings.of(
            {"WM_TICK_SECONDS": given["TickSeconds"], "WM_TIMING": given["Timings"]}
        )
        assert isinstance(settings.timing, Timing)


def test_production_keeps_the_librarys_own_intervals(prod_template: Template) -> None:
    assert json.loads(prod_template["Parameters"]["Timings"]["Default"]) == {}


def test_a_remote_queue_is_asked_instead_of_the_embedded_one(prod_template: Template) -> None:
    assert "queue-api" not in names(prod_template)
    assert "WM_TABLE_QUEUE" not in environment(prod_template, "worker-gone")
    told = environment(prod_template, "observe")
    assert {"WM_TABLE_REGISTRY", "WM_QUEUE_ROOT_URL", "WM_AUTH_SECRET"} <= told.keys()
    assert told["WM_QUEUE_BACKEND"] == "remote"
    assert environment(prod_template, "scan-pool-aws")["WM_QUEUE_ROOT_URL"] == (
        "https://tc.example.com"
    )


def test_the_embedded_queue_is_found_under_the_root_url(local_template: Template) -> None:
    assert environment(local_template, "scan-pool-aws")["WM_QUEUE_ROOT_URL"] == {"Ref": "RootUrl"}


def test_only_apis_are_told_of_an_auth_service_and_only_where_there_is_one(
    local_template: Template, template_of: Callable[[StageSettings], Template]
) -> None:
    def told(template: Template) -> dict[str, tuple[str | None, str | None]]:
        variables = {name: environment(template, name) for name in names(template)}
        return {
            name: (given.get("WM_AUTH"), given.get("WM_AUTH_ROOT_URL"))
            for name, given in variables.items()
            if given.keys() & {"WM_AUTH", "WM_AUTH_ROOT_URL"}
        }

    url = "https://tc.example.com"
    remote = template_of(replace(STAGES["dev"], auth_root_url=url))

    assert told(local_template) == {}
    assert told(remote) == dict.fromkeys(APIS, ("remote", url))
