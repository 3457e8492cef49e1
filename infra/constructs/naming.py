"""The root URL's name in DNS, where its zone is Route 53's and a stage says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_route53 as route53

if TYPE_CHECKING:
    from constructs import Construct

    from infra.settings import StageSettings


def name_in_dns(
    scope: Construct, *, settings: StageSettings, target: str, target_zone_id: str
) -> None:
    """Point the name at an AWS endpoint, given by its own name and zone."""
    if settings.hosted_zone_id:
        route53.CfnRecordSet(
            scope,
            "Name",
            name=f"{settings.host}.",
            type="A",
            hosted_zone_id=settings.hosted_zone_id,
            alias_target=route53.CfnRecordSet.AliasTargetProperty(
                dns_name=target, hosted_zone_id=target_zone_id
            ),
        )
