"""A pool of machines in a rack on a running stage, with an agent beside them.

The machines are a process of their own (``infra.local.racks``), the agent is the project's
(``worker_manager_agent``), and everything is entered as an operator would, with stock clients.
Read next: ``mishaps``, what happens to them in ``make demo``.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import requests
import taskcluster  # type: ignore[import-untyped]
from requests.adapters import HTTPAdapter
from taskcluster.client import createApiClient  # type: ignore[import-untyped]
from urllib3.util.retry import Retry

from infra.local.children import LOOPBACK, free_port
from infra.local.samples import client_options
from infra.local.stage import AGENT_ACCESS_TOKEN, AGENT_CLIENT_ID, AGENT_ID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from infra.local.children import Child
    from infra.local.stage import LocalStage

MACHINES = ("rack-1", "rack-2", "rack-3", "rack-4")
GROUP = "rack"
PROVIDER = "static"
BOOT_SECONDS = 2.0
POLL_SECONDS = 1.0
"""Between two calls for work, of a machine that has none."""

REBOOT = {
    "name": "reboot",
    "title": "Reboot",
    "context": "worker",
    "description": "By ssh, its controller or its outlet, whichever helps first.",
    "kind": "agent",
    "operation": "reboot",
    "agentId": AGENT_ID,
    "bulk": True,
    "cooldownSeconds": 0,
}
"""What the agent does, as the worker type declares it."""

POLICY = {
    "reboot": True,
    "quarantine": True,
    "thresholds": {
        "missingSeconds": 40,
        "badInARow": 3,
        "leastRuns": 3,
        "breakerShare": 0.5,
        "breakerLeast": 3,
        "atOnce": 0.5,
    },
}
"""Limits for a pool of four, and for people who watch: as short as a busy machine allows."""


class Hardware:
    """The machines ``names`` as workers of ``pool_id``; ``set_up`` enters and starts them all.

    ``url`` is where the rack is told what is to go wrong (``infra.local.racks.control``).
    """

    def __init__(
        self, stage: LocalStage, pool_id: str, names: Sequence[str] = MACHINES, *, port: int = 0
    ) -> None:
        self.pool_id = pool_id
        self.names = tuple(names)
        self.folder: Path = stage.folder / "rack"
        self._stage = stage
        self._children: list[Child] = []
        self._port = port or free_port()
        self.url = f"http://{LOOPBACK}:{self._port}"
        options = client_options(stage.root_url)
        self.manager = taskcluster.WorkerManager(options)
        self.queue = taskcluster.Queue(options)
        self.registry = _registry_client(stage.root_url)(options)

    def set_up(self, *, agent_poll_seconds: float = 1.0) -> None:
        """Create the pool, its workers and what may be done to them; start rack and agent."""
        secrets = {name: taskcluster.slugId() + taskcluster.slugId() for name in self.names}
        self._enter(secrets)
        self._declare()
        self._start_rack(secrets)
        self._start_agent(agent_poll_seconds)

    def stop(self) -> None:
        """End agent and rack; else they end with the stage."""
        while self._children:
            self._stage.end(self._children.pop())

    def name_of(self, machine: str) -> tuple[str, str, str]:
        """The worker on a machine, as the worker manager's calls want it."""
        return self.pool_id, GROUP, machine

    def path_of(self, machine: str) -> tuple[str, str, str, str]:
        """The same for calls of the queue and the registry."""
        provisioner_id, worker_type = self.pool_id.split("/")
        return provisioner_id, worker_type, GROUP, machine

    def _enter(self, secrets: dict[str, str]) -> None:
        self.manager.createWorkerPool(
            self.pool_id,
            {
                "providerId": PROVIDER,
                "description": "machines in a rack",
                "owner": "owner@example.com",
                "emailOnError": False,
                "config": {"workerConfig": {"capacity": 1}},
            },
        )
        expires = taskcluster.stringDate(datetime.now(UTC) + timedelta(days=365))
        for name, secret in secrets.items():
            worker = {"expires": expires, "providerInfo": {"staticSecret": secret}}
            self.manager.createWorker(*self.name_of(name), worker)

    def _declare(self) -> None:
        provisioner_id, worker_type = self.pool_id.split("/")
        said = {"description": "machines in a rack", "hardware": True, "actions": [REBOOT]}
        self.registry.declareWorkerType(provisioner_id, worker_type, said)
        self.registry.setMachinePolicy(self.pool_id, POLICY)

    def _start_rack(self, secrets: dict[str, str]) -> None:
        self.folder.mkdir()
        config = self.folder / "rack.json"
        document = {
            "root_url": self._stage.root_url,
            "worker_pool_id": self.pool_id,
            "provider_id": PROVIDER,
            "worker_group": GROUP,
            "boot_seconds": BOOT_SECONDS,
            "poll_seconds": POLL_SECONDS,
            "machines": secrets,
        }
        _write_private(config, json.dumps(document))
        arguments = ["infra.local.racks", "--config", str(config), "--port", str(self._port)]
        rack = self._stage.start("rack-machines", arguments)
        self._children.append(rack)
        rack.wait_for_port(self._port)

    def _start_agent(self, poll_seconds: float) -> None:
        credentials = self.folder / "credentials.toml"
        _write_private(
            credentials,
            f'client_id = "{AGENT_CLIENT_ID}"\naccess_token = "{AGENT_ACCESS_TOKEN}"\n',
        )
        config = self.folder / "agent.toml"
        config.write_text(
            f'root_url = "{self._stage.root_url}"\n'
            f'agent_id = "{AGENT_ID}"\n'
            'inventory = "inventory.toml"\n'
            f'task_queues = ["{self.pool_id}"]\n'
            f'credentials_file = "{credentials.name}"\n'
            f"poll_seconds = {poll_seconds}\n"
        )
        agent = self._stage.start("agent", ["worker_manager_agent", "--config", str(config)])
        self._children.append(agent)


def _registry_client(root_url: str) -> Any:
    """A client made of the reference that is served, as anybody can make one."""
    url = f"{root_url}/references/worker-registry/v1/api.json"
    patient = HTTPAdapter(max_retries=Retry(5, backoff_factor=0.5, status_forcelist=(500, 503)))
    with requests.Session() as http:
        http.trust_env = False
        http.mount(url, patient)
        return createApiClient("WorkerRegistry", {"reference": http.get(url, timeout=60).json()})


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
