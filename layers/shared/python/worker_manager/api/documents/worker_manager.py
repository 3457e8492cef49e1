"""The worker manager, as documents speak of it."""

from __future__ import annotations

from worker_manager.api import routes
from worker_manager.api.config_schemas import AwsConfig, NullConfig, StaticConfig
from worker_manager.api.config_schemas_azure import AzureConfig
from worker_manager.api.config_schemas_google import GoogleConfig
from worker_manager.api.documents.service import Service, published
from worker_manager.api.event_schemas import EVENTS, MESSAGES
from worker_manager.api.plan_schemas import LaunchConfigDetailList
from worker_manager.api.schemas import ShouldTerminateAnswer
from worker_manager.api.view_schemas import WorkerPoolsStatsList

NAME = "worker-manager"

SERVICE = Service(
    name=NAME,
    title="Worker Manager",
    description=(
        "Keeps pools of build and test machines right-sized across clouds and in one's own racks, "
        "and gives their workers credentials."
    ),
    routes=published((*routes.POOLS, *routes.WORKERS), NAME),
    schema_names={
        AwsConfig: "config-aws",
        GoogleConfig: "config-google",
        AzureConfig: "config-azure",
        StaticConfig: "config-static",
        NullConfig: "config-null",
        LaunchConfigDetailList: "worker-pool-launch-config-list",
        ShouldTerminateAnswer: "should-worker-terminate-response",
        WorkerPoolsStatsList: "worker-pool-list-stats",
    },
    messages=MESSAGES,
    events=EVENTS,
)
