"""The other front door: an Application Load Balancer in front of the same functions.

It is paid by the hour and by what goes through, not by the request, which is cheaper where
thousands of workers poll.  Path and query arrive as they were sent; requests and answers may take
1 MB, and larger requests are refused before anything of ours hears of them.  It knows no throttle:
what bounds a flood is how many calls each function may answer at once.
Where to read next: ``api``, its twin; ``worker_manager.api.load_balancer``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, Fn
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elb
from aws_cdk import aws_elasticloadbalancingv2_targets as targets
from constructs import Construct

from infra.constructs.api import ROUTES
from infra.constructs.naming import name_in_dns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.constructs.function import ServiceFunction
    from infra.settings import StageSettings

AT_ONCE = 100
"""The calls that each function answers at once in a stage which says nothing else."""

DEFAULT = "pools_api"
"""Answers every path that no rule is about."""

_GREEDY = "{proxy+}"
_MINUTE = Duration.minutes(1)


def rules(functions: Mapping[str, object]) -> list[tuple[str, str]]:
    """Path pattern and function of each rule, the most specific first.

    Paths of the default function need a rule only inside those of others.
    """
    paths = [(path, name) for path, name in ROUTES.items() if name in functions]
    others = [path.removesuffix(_GREEDY) for path, name in paths if name != DEFAULT]
    wanted = [
        (path, name)
        for path, name in paths
        if name != DEFAULT or any(path.startswith(prefix) for prefix in others)
    ]
    ordered = sorted(wanted, key=lambda rule: (-rule[0].count("/"), rule[0].endswith(_GREEDY)))
    return [(path.replace(_GREEDY, "*"), name) for path, name in ordered]


class LoadBalancer(Construct):
    """The load balancer of a stage: HTTPS in, functions behind."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        functions: Mapping[str, ServiceFunction],
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self.balancer = elb.ApplicationLoadBalancer(
            self,
            "Balancer",
            load_balancer_name=settings.resource_name("api"),
            vpc=self._vpc(),
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC),
            internet_facing=True,
            drop_invalid_header_fields=True,
            deletion_protection=settings.keeps_tables,
        )
        for function in functions.values():
            function.runs_at_most(settings.api_concurrency or AT_ONCE)
        groups = {name: self._group(name, function) for name, function in functions.items()}
        listener = self.balancer.add_listener(
            "Https",
            port=443,
            protocol=elb.ApplicationProtocol.HTTPS,
            ssl_policy=elb.SslPolicy.RECOMMENDED_TLS,
            certificates=[
                acm.Certificate.from_certificate_arn(
                    self, "Certificate", settings.certificate_arn or ""
                )
            ],
            default_target_groups=[groups[DEFAULT]],
        )
        for number, (pattern, name) in enumerate(rules(functions), start=1):
            elb.ApplicationListenerRule(
                self,
                f"Rule{number}",
                listener=listener,
                priority=number,
                conditions=[elb.ListenerCondition.path_patterns([settings.path_prefix + pattern])],
                action=elb.ListenerAction.forward([groups[name]]),
            )
        name_in_dns(
            self,
            settings=settings,
            target=self.balancer.load_balancer_dns_name,
            target_zone_id=self.balancer.load_balancer_canonical_hosted_zone_id,
        )

    @property
    def url(self) -> str:
        """Where the load balancer answers; the certificate is for the root URL's name."""
        return f"https://{self.balancer.load_balancer_dns_name}"

    @property
    def requests(self) -> Sequence[cloudwatch.IMetric]:
        """All requests."""
        return [self.balancer.metrics.request_count(period=_MINUTE)]

    @property
    def faults(self) -> Sequence[cloudwatch.IMetric]:
        """Answers with 5xx: the functions', and the load balancer's own."""
        metrics = self.balancer.metrics
        return [
            metrics.http_code_target(elb.HttpCodeTarget.TARGET_5XX_COUNT, period=_MINUTE),
            metrics.http_code_elb(elb.HttpCodeElb.ELB_5XX_COUNT, period=_MINUTE),
        ]

    def _vpc(self) -> ec2.IVpc:
        """The stage's, or one with nothing but two public subnets: nothing else runs there."""
        settings = self._settings
        if settings.vpc_id:
            return ec2.Vpc.from_vpc_attributes(
                self,
                "Vpc",
                vpc_id=settings.vpc_id,
                availability_zones=[
                    Fn.select(number, Fn.get_azs()) for number in range(len(settings.subnet_ids))
                ],
                public_subnet_ids=list(settings.subnet_ids),
            )
        return ec2.Vpc(
            self,
            "Vpc",
            vpc_name=settings.resource_name("api"),
            max_azs=2,
            nat_gateways=0,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="Public", subnet_type=ec2.SubnetType.PUBLIC)
            ],
        )

    def _group(self, name: str, function: ServiceFunction) -> elb.ApplicationTargetGroup:
        """A function as a target.  Health checks would be calls to pay for, of what cannot die."""
        return elb.ApplicationTargetGroup(
            self,
            name.title().replace("_", ""),
            target_group_name=self._settings.resource_name(name.replace("_", "-")),
            target_type=elb.TargetType.LAMBDA,
            targets=[targets.LambdaTarget(function.function)],
            multi_value_headers_enabled=True,
        )
