"""Every function is built from exactly the environment that the template gives it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from infra.local import template
from infra.local.front import find_route
from tests.azure_signer import ROOT
from tests.functions.deployed import TOKEN, DeployedStage, function_names, local_template
from worker_manager import settings
from worker_manager.api import queue as queue_routes
from worker_manager.api import routes
from worker_manager.blobs import S3Blobs
from worker_manager.core.errors import ProofUnavailableError
from worker_manager.core.model import Location
from worker_manager.identity.azure_certificates import bundled_roots
from worker_manager.metrics import meter
from worker_manager.providers.aws.provider import AwsProvider
from worker_manager.providers.registry import CLOUDS
from worker_manager.queues import SqsSender
from worker_manager.settings import TABLE_VARIABLES, MissingSettingError
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.queue import TaskclusterQueue
from worker_manager.taskcluster.remote_auth import RemoteAuthenticator
from worker_manager.wiring import acting, api, examining, loops, pulse, queue, registry, sightings
from worker_manager.wiring.base import not_given, now

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager.reconcile.deps import Deps

LOOPS = {
    "provision-tick-aws": {"ticks", "provision"},
    "provision-pool-aws": {"advance"},
    "scan-tick-aws": {"ticks", "scan"},
    "scan-pool-aws": set(),
    "advance-aws": {"advance", "provision"},
    "notices-aws": {"provision"},
    "sweep-aws": set(),
}
"""Queues that each function of a loop may send to; of other clouds' loops too."""

BUILDERS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(LOOPS, loops.loop),
    "expire": loops.keeper,
    "publish": loops.keeper,
    "pools-api": api.pools_api,
    "workers-api": api.workers_api,
    "queue-api": queue.queue_api,
    "registry-api": registry.registry_api,
    "worker-gone": sightings.worker_ends,
    "pulse": pulse.pulse,
    "act": acting.acting,
    "examine": examining.examining,
}


def built(deployed: DeployedStage, name: str, **changes: str | None) -> Any:
    with deployed.container(name, **changes):
        return BUILDERS[name]()


def loop(deployed: DeployedStage, name: str, **changes: str | None) -> Deps:
    deps: Deps = built(deployed, name, **changes)
    return deps


def test_every_function_is_built_by_a_builder() -> None:
    others = {name.replace("-aws", f"-{cloud}") for name in LOOPS for cloud in CLOUDS}
    assert {*BUILDERS, *others} - {"notices-azure", "notices-google"} == set(function_names())


@pytest.mark.parametrize("name", BUILDERS)
def test_a_function_lacks_no_variable(deployed: DeployedStage, name: str) -> None:
    assert built(deployed, name) is not None


@pytest.mark.parametrize("name", LOOPS)
def test_a_loops_function_may_send_to_its_queues_and_no_other(
    deployed: DeployedStage, name: str
) -> None:
    senders = loop(deployed, name).senders
    assert {q for q, sender in senders.items() if isinstance(sender, SqsSender)} == LOOPS[name]


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_knows_its_provider_and_who_else_plans(deployed: DeployedStage, name: str) -> None:
    deps = loop(deployed, name)
    assert deps.provider_id == "aws"
    assert deps.planners == CLOUDS.keys()
    assert deps.inputs == {
        "rootUrl": "http://127.0.0.1:5080",
        "deployment": "worker-manager-local",
    }
    assert deps.timing.tick.seconds == 5


def test_only_those_who_launch_list_or_delete_have_a_cloud(deployed: DeployedStage) -> None:
    with_cloud = {n for n in LOOPS if isinstance(loop(deployed, n).provider, AwsProvider)}
    assert with_cloud == LOOPS.keys() - {"provision-tick-aws"}


def test_only_those_who_ask_for_demand_or_activity_have_a_queue_to_ask(
    deployed: DeployedStage,
) -> None:
    asking = {n for n in LOOPS if isinstance(loop(deployed, n).queue, TaskclusterQueue)}
    assert asking == {"provision-pool-aws", "scan-pool-aws"}


def test_only_scans_have_a_bucket(deployed: DeployedStage) -> None:
    having = {n for n in LOOPS if isinstance(loop(deployed, n).blobs, S3Blobs)}
    assert having == {"scan-tick-aws", "scan-pool-aws"}


@pytest.mark.parametrize(
    ("variable", "use"),
    [
        ("WM_BUS", lambda deps: deps.outbox.send_workers([])),
        ("WM_CLOUD_SECRET", lambda deps: deps.provider.instances(Location("us-east-1"))),
        ("WM_QUEUE_ROOT_URL", lambda deps: deps.queue.counts("a/b")),
        ("WM_QUEUE_SCAN", lambda deps: deps.senders["scan"].send([])),
    ],
)
def test_what_was_not_given_names_its_variable_when_used(
    deployed: DeployedStage, variable: str, use: Callable[[Deps], Any]
) -> None:
    deps = loop(deployed, "provision-tick-aws")
    with pytest.raises(MissingSettingError, match=f"not given {variable}$"):
        use(deps)


def test_anything_asked_of_what_was_not_given_fails() -> None:
    with pytest.raises(MissingSettingError, match="WM_X"):
        _ = not_given("WM_X").whatever


def test_an_access_key_in_the_clouds_secret_is_used(deployed: DeployedStage) -> None:
    secret = deployed.environment("scan-tick-aws")["WM_CLOUD_SECRET"]
    key = {"accessKeyId": "AKIDOTHER", "secretAccessKey": "other-secret"}
    client: Any = boto3.client("secretsmanager")
    before = client.get_secret_value(SecretId=secret)["SecretString"]
    client.put_secret_value(SecretId=secret, SecretString=json.dumps(key))
    try:
        provider: Any = loop(deployed, "scan-tick-aws").provider
    finally:
        client.put_secret_value(SecretId=secret, SecretString=before)
    assert provider._session.get_credentials().access_key == "AKIDOTHER"


def test_another_queue_is_asked_with_the_issuers_credentials(deployed: DeployedStage) -> None:
    asked: Any = loop(
        deployed, "scan-pool-aws", WM_QUEUE_ROOT_URL="https://other.example.com/"
    ).queue
    assert asked._http._root_url == "https://other.example.com"
    assert asked._http._credentials == {"clientId": "test/issuer", "accessToken": TOKEN}


def test_the_keeper_tells_static_providers_from_clouds(deployed: DeployedStage) -> None:
    keeper = built(deployed, "expire")
    assert (keeper.providers, keeper.static) == ([*sorted(CLOUDS), "static"], {"static"})


def test_the_api_for_operators_asks_a_queue_that_it_loads_when_first_used(
    deployed: DeployedStage,
) -> None:
    with deployed.container("pools-api"):
        queue: Any = api.Api(settings.load()).deps().queue
        assert not isinstance(queue._made, TaskclusterQueue)
        asked = queue.counts.__self__
        assert isinstance(asked, TaskclusterQueue)
        assert asked._http._root_url == "http://127.0.0.1:5080"
        assert queue.busy.__self__ is asked


def test_the_api_for_machines_asks_no_queue(deployed: DeployedStage) -> None:
    with deployed.container("workers-api"):
        queue = api.Api(settings.load()).deps().queue
        with pytest.raises(MissingSettingError, match="WM_QUEUE_ROOT_URL"):
            queue.counts("a/b")


@pytest.mark.parametrize("name", ["pools-api", "workers-api"])
def test_pages_of_lists_are_cut_to_what_the_front_door_takes(
    deployed: DeployedStage, name: str
) -> None:
    assert built(deployed, name, WM_PAGE_BYTES="1234")._deps.page_bytes == 1234
    assert built(deployed, name)._deps.page_bytes == settings.PAGE_BYTES


def test_metrics_are_written_where_the_stage_keeps_them(
    deployed: DeployedStage, capsys: pytest.CaptureFixture[str]
) -> None:
    built(deployed, "expire", POWERTOOLS_METRICS_NAMESPACE="wm-test")
    meter.mail_failed()
    meter.flush()
    built(deployed, "expire", POWERTOOLS_METRICS_NAMESPACE=None)
    meter.mail_failed()
    meter.flush()

    [line] = capsys.readouterr().out.splitlines()
    assert "wm-test" in line


def test_apis_know_the_inboxes_of_every_provider_with_a_loop(deployed: DeployedStage) -> None:
    for name in ("pools-api", "workers-api"):
        with deployed.container(name):
            deps = api.Api(settings.load()).deps()
        inboxes = {provider_id: set(queues) for provider_id, queues in deps.senders.items()}
        assert inboxes == {key: {"advance", "provision"} for key in CLOUDS}
        assert sorted(deps.providers) == [*sorted(CLOUDS), "static"]


def test_who_signs_for_machines_of_other_clouds_is_known_when_asked(
    deployed: DeployedStage,
) -> None:
    with deployed.container("workers-api"):
        deps = api.Api(settings.load()).deps()
    assert deps.azure_anchors.roots == bundled_roots()
    further = {"WM_TRUSTED_AZURE_ROOTS": ROOT.pem, "WM_GOOGLE_CERTS_URL": "http://127.0.0.1:1/"}
    with deployed.container("workers-api", **further):
        deps = api.Api(settings.load()).deps()
    assert deps.azure_anchors.roots == (*bundled_roots(), ROOT.certificate)
    with pytest.raises(ProofUnavailableError):
        deps.google_keys.key("kid-1", now=now())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pools-api", routes.POOLS),
        ("workers-api", routes.WORKERS),
        ("queue-api", queue_routes.ROUTES),
    ],
)
def test_the_gateway_brings_each_route_to_the_function_that_has_it(
    name: str, expected: tuple[Any, ...]
) -> None:
    gateway = template.routes(local_template())
    answering = {
        route.name: find_route(gateway, route.template.replace("<workerPoolId>", "a%2Fb"))
        for route in expected
    }
    assert {found.function_name for found in answering.values()} == {f"wm-local-{name}"}, answering


def test_a_container_builds_once(deployed: DeployedStage) -> None:
    with deployed.container("expire"):
        assert loops.keeper() is loops.keeper()


def test_the_clock_is_aware_and_whole_to_the_millisecond() -> None:
    moment = now()
    assert moment.utcoffset() is not None
    assert moment.microsecond % 1000 == 0


def test_functions_are_told_of_tables_by_names_that_exist(deployed: DeployedStage) -> None:
    client: Any = boto3.client("dynamodb")
    existing = set(client.list_tables()["TableNames"])
    for name in function_names():
        given = deployed.environment(name)
        assert {given[v] for v in TABLE_VARIABLES.values() if v in given} <= existing


@pytest.mark.parametrize("name", ["pools-api", "workers-api", "queue-api"])
def test_an_auth_service_is_asked_by_every_api_where_one_is_named(
    deployed: DeployedStage, name: str
) -> None:
    assert isinstance(built(deployed, name)._deps.authenticator, LocalAuthenticator)
    remote = {"WM_AUTH": "remote", "WM_AUTH_ROOT_URL": "https://tc.example.com"}
    authenticator = built(deployed, name, **remote)._deps.authenticator
    assert isinstance(authenticator, RemoteAuthenticator)
    assert authenticator._issuer.client_id == "test/issuer"
