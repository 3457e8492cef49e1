"""Pools of Google and Azure behind the API, and whoever signs for their machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.api.world import ROOT_URL, Api, MemorySender, a_definition
from tests.azure_signer import ROOT
from tests.factories import NOW
from tests.google_signer import PROJECT, SERVICE_ACCOUNT, Published
from worker_manager.api.configs import to_parts, validate_config
from worker_manager.core.errors import ProofUnavailableError
from worker_manager.core.timing import Timing
from worker_manager.identity.azure_certificates import AzureAnchors
from worker_manager.identity.azure_downloads import IssuerDownloads
from worker_manager.identity.downloads import Downloaded
from worker_manager.settings import ProviderSettings

if TYPE_CHECKING:
    from worker_manager.core.definition import Parts

SUBSCRIPTION = "00000000-0000-4000-8000-000000000000"
GOOGLE = ProviderSettings(
    "google",
    "google",
    {
        "project": PROJECT,
        "serviceAccountId": SERVICE_ACCOUNT,
        "serviceAccountEmail": "worker@proj.iam.gserviceaccount.com",
    },
)
AZURE = ProviderSettings(
    "azure", "azure", {"subscription": SUBSCRIPTION, "resourceGroup": "rg-workers"}
)


class Issuers:
    """The web, as far as issuers' certificates are on it: ``None`` is out of reach."""

    def __init__(self, found: bytes | None) -> None:
        self.found = found

    def __call__(self, url: str) -> Downloaded:
        if self.found is None:
            raise ProofUnavailableError(f"{url} does not answer")
        return Downloaded(self.found)


def with_clouds(
    api: Api, *, published: Published | None = None, issuers: Issuers | None = None
) -> Api:
    """The same API, which now knows a provider of each cloud."""
    senders = {"provision": MemorySender(), "advance": MemorySender()}
    api.works_with(
        providers={**api.deps.providers, "google": GOOGLE, "azure": AZURE},
        senders={**api.deps.senders, "google": senders, "azure": senders},
        google_keys=(published or Published()).keys(),
        azure_anchors=AzureAnchors(
            [ROOT.certificate], IssuerDownloads(fetching=issuers or Issuers(None))
        ),
    )
    return api


def real_pools(cloud: str) -> list[dict[str, Any]]:
    """Definitions as people have them, given to our provider of that cloud."""
    path = Path(__file__).parent.parent / "data" / f"worker-pools-{cloud}.json"
    return [{**pool, "providerId": cloud} for pool in json.loads(path.read_text())]


def a_google_launch_config(**overrides: Any) -> dict[str, Any]:
    return {
        "region": "us-central1",
        "zone": "us-central1-a",
        "machineType": "zones/us-central1-a/machineTypes/n2-standard-2",
        "disks": [{"type": "PERSISTENT", "boot": True}],
        "networkInterfaces": [{}],
        "scheduling": {"provisioningModel": "SPOT"},
        "workerConfig": {"speed": 9},
        "workerManager": {"launchConfigId": "lc-a"},
        **overrides,
    }


def a_machine_config(**overrides: Any) -> dict[str, Any]:
    """Of Azure, described machine by machine."""
    return {
        "location": "eastus",
        "subnetId": f"/subscriptions/{SUBSCRIPTION}/subnets/sn",
        "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
        "storageProfile": {"osDisk": {}},
        "workerConfig": {"speed": 9},
        "workerManager": {"launchConfigId": "lc-a"},
        **overrides,
    }


def a_deployment_config(
    deployment: dict[str, Any] | None = None, **overrides: Any
) -> dict[str, Any]:
    """Of Azure, by a template; ``deployment`` changes what is deployed."""
    return {
        "armDeployment": {
            "mode": "Incremental",
            "templateLink": {"uri": "https://example.com/template.json"},
            "parameters": {
                "location": {"value": "eastus"},
                "vmSize": {"value": "Standard_D2s_v5"},
                "priority": {"value": "Spot"},
            },
            **(deployment or {}),
        },
        "workerConfig": {"speed": 9},
        "workerManager": {"launchConfigId": "lc-a"},
        **overrides,
    }


def taken(provider: ProviderSettings, launch_config: Any) -> Parts:
    """What a launch config is taken to be when a pool with it is written, or why it is not."""
    config = a_pool_of(provider.provider_id, launch_config)["config"]
    validated = validate_config(
        config, provider.provider_type, shortest_inactivity=Timing().shortest_inactivity
    )
    return to_parts("proj-x/pool-1", validated, provider=provider, root_url=ROOT_URL, now=NOW)


def a_pool_of(provider_id: str, *launch_configs: Any) -> dict[str, Any]:
    return a_definition(providerId=provider_id, config={"launchConfigs": list(launch_configs)})
