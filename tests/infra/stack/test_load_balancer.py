"""The load balancer as front door: the same functions answer the same paths."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from infra.constructs.load_balancer import rules
from infra.local.front import find_route
from infra.local.template import referred_to, routes
from infra.settings import STAGES, StageSettings
from tests.infra.stack.reading import environment, function, names, of_type
from worker_manager.api import queue as queue_routes
from worker_manager.api import routes as api_routes

if TYPE_CHECKING:
    from collections.abc import Callable

Template = dict[str, Any]

PAGED = ("pools-api", "workers-api", "registry-api")
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/1"
PATHS = {
    *(route.template for route in (*api_routes.POOLS, *api_routes.WORKERS)),
    *(route.template for route in queue_routes.ROUTES),
    "/api/worker-registry/v1/provisioners",
    "/references/worker-registry/v1/api.json",
    "/schemas/worker-registry/v1/worker.json",
}


@pytest.fixture(scope="module")
def balanced(template_of: Callable[[StageSettings], Template]) -> Template:
    return template_of(
        replace(
            STAGES["dev"],
            front_door="load-balancer",
            certificate_arn=CERTIFICATE,
            hosted_zone_id="Z123",
            root_url="https://tc.example.com/prefix",
        )
    )


def answering(template: Template, path: str) -> str:
    """The function that a listener's rules bring a path to."""
    groups = of_type(template, "AWS::ElasticLoadBalancingV2::TargetGroup")
    functions = of_type(template, "AWS::Lambda::Function")

    def function_of(actions: list[dict[str, Any]]) -> str:
        group = groups[actions[0]["TargetGroupArn"]["Ref"]]
        [logical_id] = referred_to(group["Targets"][0]["Id"])
        name: str = functions[logical_id]["FunctionName"]
        return name.split("-", 2)[2]

    found = of_type(template, "AWS::ElasticLoadBalancingV2::ListenerRule").values()
    for rule in sorted(found, key=lambda rule: int(rule["Priority"])):
        for pattern in rule["Conditions"][0]["PathPatternConfig"]["Values"]:
            if fnmatchcase(path, pattern):
                return function_of(rule["Actions"])
    [listener] = of_type(template, "AWS::ElasticLoadBalancingV2::Listener").values()
    return function_of(listener["DefaultActions"])


@pytest.mark.parametrize("path", sorted(PATHS))
def test_a_path_is_answered_by_the_same_function_as_behind_the_gateway(
    balanced: Template, local_template: Template, path: str
) -> None:
    sent = path.replace("<workerPoolId>", "a%2Fb")
    gateway = find_route(routes(local_template), sent)

    assert answering(balanced, f"/prefix{sent}") == gateway.function_name.split("-", 2)[2]


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/prefix/api/auth/v1/ping"])
def test_whatever_else_is_answered_by_the_default_function(balanced: Template, path: str) -> None:
    assert answering(balanced, path) == "pools-api"


def test_the_most_specific_rule_comes_first() -> None:
    found = [pattern for pattern, _ in rules({"pools_api": 1, "workers_api": 1, "queue_api": 1})]

    assert found.index("/api/worker-manager/v1/worker/*") < found.index("/api/queue/*")
    assert "/*" not in found


def test_rules_name_only_functions_that_exist() -> None:
    assert {name for _, name in rules({"pools_api": 1, "workers_api": 1})} == {"workers_api"}


def test_only_https_is_answered_with_the_stages_certificate(balanced: Template) -> None:
    [listener] = of_type(balanced, "AWS::ElasticLoadBalancingV2::Listener").values()

    assert (listener["Port"], listener["Protocol"]) == (443, "HTTPS")
    assert listener["Certificates"] == [{"CertificateArn": CERTIFICATE}]
    assert "TLS13" in listener["SslPolicy"]


def test_functions_hear_of_every_header_and_are_not_called_for_health(balanced: Template) -> None:
    groups = of_type(balanced, "AWS::ElasticLoadBalancingV2::TargetGroup").values()

    assert len(groups) == 4
    for group in groups:
        attributes = {item["Key"]: item["Value"] for item in group["TargetGroupAttributes"]}
        assert attributes["lambda.multi_value_headers.enabled"] == "true"
        assert not group.get("HealthCheckEnabled", False)


def test_pages_are_cut_to_what_a_load_balancer_takes(
    balanced: Template, local_template: Template
) -> None:
    for name in names(balanced):
        given = environment(balanced, name).get("WM_PAGE_BYTES")
        assert given == ("900000" if name in PAGED else None)
    assert "WM_PAGE_BYTES" not in environment(local_template, "pools-api")


def test_each_function_answers_so_many_calls_at_once_and_no_more(
    balanced: Template,
    local_template: Template,
    template_of: Callable[[StageSettings], Template],
) -> None:
    fewer = template_of(
        replace(
            STAGES["dev"],
            front_door="load-balancer",
            certificate_arn=CERTIFICATE,
            api_concurrency=20,
        )
    )
    for template, at_once in ((balanced, 100), (fewer, 20), (local_template, None)):
        for name in names(template):
            reserved = function(template, name).get("ReservedConcurrentExecutions")
            assert reserved == (at_once if name.endswith("-api") else None)


def test_there_is_no_gateway_beside_it(balanced: Template) -> None:
    assert not of_type(balanced, "AWS::ApiGateway::RestApi")


def test_the_root_urls_name_leads_to_it(balanced: Template) -> None:
    [record] = of_type(balanced, "AWS::Route53::RecordSet").values()

    assert (record["Name"], record["Type"]) == ("tc.example.com.", "A")


def test_a_vpc_of_ones_own_is_used_instead_of_a_new_one(
    template_of: Callable[[StageSettings], Template], balanced: Template
) -> None:
    given = template_of(
        replace(
            STAGES["dev"],
            front_door="load-balancer",
            certificate_arn=CERTIFICATE,
            vpc_id="vpc-1",
            subnet_ids=("subnet-1", "subnet-2"),
        )
    )

    [balancer] = of_type(given, "AWS::ElasticLoadBalancingV2::LoadBalancer").values()
    assert balancer["Subnets"] == ["subnet-1", "subnet-2"]
    assert not of_type(given, "AWS::EC2::VPC")
    assert len(of_type(balanced, "AWS::EC2::Subnet")) == 2
    assert not of_type(balanced, "AWS::EC2::NatGateway")
