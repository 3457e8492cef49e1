"""The front door: a REST API, because it keeps ``%2F`` in paths, as signatures need it.

Which function answers a path is in ``ROUTES``.  What the gateway itself refuses is said in
Taskcluster's error body, so that stock clients understand it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.constructs.naming import name_in_dns
from worker_manager.api.refusals import RETRY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.constructs.function import ServiceFunction
    from infra.settings import StageSettings

ROUTES = {
    "/": "pools_api",
    "/{proxy+}": "pools_api",
    "/api/{proxy+}": "pools_api",
    "/api/worker-manager/{proxy+}": "pools_api",
    "/api/worker-manager/v1/{proxy+}": "pools_api",
    "/api/worker-manager/v1/worker/{proxy+}": "workers_api",
    "/api/worker-manager/v1/workers/{proxy+}": "workers_api",
    "/api/worker-manager/v1/worker-pool-errors/{proxy+}": "workers_api",
    "/api/queue/{proxy+}": "queue_api",
    "/api/worker-registry/{proxy+}": "registry_api",
    "/references/{proxy+}": "pools_api",
    "/references/queue/{proxy+}": "queue_api",
    "/references/worker-registry/{proxy+}": "registry_api",
    "/schemas/{proxy+}": "pools_api",
    "/schemas/queue/{proxy+}": "queue_api",
    "/schemas/worker-registry/{proxy+}": "registry_api",
}
"""Path → function.  Each level that has children has a ``{proxy+}`` of its own: the gateway
takes the most specific path, and nothing then depends on whether it looks further up."""


PER_SECOND = 500
AT_ONCE = 1000
"""The requests that a stage takes which says nothing else."""

_MINUTE = Duration.minutes(1)


@dataclass(frozen=True)
class Refusal:
    """What a client hears when the gateway answers instead of a function."""

    kind: str
    status: int
    code: str
    message: str


_LATER = "The service cannot answer now; please try again."

REFUSALS = (
    Refusal("THROTTLED", 503, "ServiceUnavailable", "Too many requests; please slow down."),
    Refusal("QUOTA_EXCEEDED", 503, "ServiceUnavailable", "Too many requests; please slow down."),
    Refusal("INTEGRATION_FAILURE", 503, "ServiceUnavailable", _LATER),
    Refusal("INTEGRATION_TIMEOUT", 503, "ServiceUnavailable", _LATER),
    Refusal("REQUEST_TOO_LARGE", 413, "InputTooLarge", "The request is larger than 10 MB."),
    Refusal("MISSING_AUTHENTICATION_TOKEN", 404, "ResourceNotFound", "There is no such method."),
    Refusal("RESOURCE_NOT_FOUND", 404, "ResourceNotFound", "There is no such method."),
    Refusal("BAD_REQUEST_BODY", 400, "MalformedPayload", "The request body is malformed."),
    Refusal("UNSUPPORTED_MEDIA_TYPE", 400, "MalformedPayload", "Only JSON is understood."),
    Refusal("UNAUTHORIZED", 401, "AuthenticationFailed", "Authentication failed."),
    Refusal("ACCESS_DENIED", 403, "InsufficientScopes", "Access is denied."),
    Refusal("WAF_FILTERED", 403, "InsufficientScopes", "Access is denied."),
    Refusal("DEFAULT_4XX", 400, "InputError", "The request cannot be understood."),
    Refusal("DEFAULT_5XX", 500, "InternalServerError", _LATER),
)


def error_body(refusal: Refusal) -> str:
    """Taskcluster's error body, with the gateway's variable for the time.

    The gateway's templates can only fill in variables, and it has none for an ISO time.
    """
    return json.dumps(
        {
            "code": refusal.code,
            "message": refusal.message,
            "requestInfo": {
                "method": "gateway",
                "params": {},
                "payload": {},
                "time": "$context.requestTime",
            },
        }
    )


class Api(Construct):
    """The REST API of a stage."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StageSettings,
        functions: Mapping[str, ServiceFunction],
    ) -> None:
        super().__init__(scope, construct_id)
        self.rest_api = apigateway.RestApi(
            self,
            "Rest",
            rest_api_name=settings.resource_name("api"),
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            cloud_watch_role=False,
            deploy_options=apigateway.StageOptions(
                stage_name=settings.name,
                throttling_rate_limit=settings.requests_per_second or PER_SECOND,
                throttling_burst_limit=settings.burst_requests or AT_ONCE,
            ),
        )
        integrations = {
            name: apigateway.LambdaIntegration(function.function, scope_permission_to_method=False)
            for name, function in functions.items()
        }
        for path, name in ROUTES.items():
            if name in integrations:
                self.rest_api.root.resource_for_path(path).add_method("ANY", integrations[name])
        for refusal in REFUSALS:
            self._map(refusal)
        if settings.certificate_arn:
            self._name(settings, settings.certificate_arn)

    @property
    def url(self) -> str:
        """Where the gateway itself answers."""
        return self.rest_api.url

    @property
    def requests(self) -> Sequence[cloudwatch.IMetric]:
        """All requests."""
        return [self.rest_api.metric_count(period=_MINUTE)]

    @property
    def faults(self) -> Sequence[cloudwatch.IMetric]:
        """Answers with 5xx, the functions' and the gateway's own."""
        return [self.rest_api.metric_server_error(period=_MINUTE)]

    def _map(self, refusal: Refusal) -> None:
        headers = {"Access-Control-Allow-Origin": "'*'", "Cache-Control": "'no-store'"}
        if refusal.status >= 500:
            headers["Retry-After"] = f"'{RETRY_SECONDS}'"
        if refusal.status == 401:
            headers["WWW-Authenticate"] = "'hawk'"
        apigateway.GatewayResponse(
            self,
            refusal.kind.title().replace("_", ""),
            rest_api=self.rest_api,
            type=apigateway.ResponseType.of(refusal.kind),
            status_code=str(refusal.status),
            response_headers=headers,
            templates={"application/json": error_body(refusal)},
        )

    def _name(self, settings: StageSettings, certificate_arn: str) -> None:
        """Answer under the root URL's own host, which is what clients sign."""
        domain = self.rest_api.add_domain_name(
            "Domain",
            domain_name=settings.host,
            base_path=settings.path_prefix.strip("/") or None,
            security_policy=apigateway.SecurityPolicy.TLS_1_2,
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", certificate_arn),
            endpoint_type=apigateway.EndpointType.REGIONAL,
        )
        name_in_dns(
            self,
            settings=settings,
            target=domain.domain_name_alias_domain_name,
            target_zone_id=domain.domain_name_alias_hosted_zone_id,
        )
