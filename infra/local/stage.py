"""The whole system on this machine: simulated clouds, emulator, deployed template, front door.

Used by ``runner`` for people and by the journey tests::

    with LocalStage(folder=tmp_path, schedules=False) as stage:
        stage.invoke("provision-tick-aws", event)
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from infra.local.children import LOOPBACK, Child, clean_environment, free_port
from infra.local.deploy import ACCOUNT, REGION, aws_client, deploy
from infra.local.front import Front
from infra.local.simulated import CLOUDS, CREDENTIALS, control_document, template_parameters
from infra.local.synth import ROOT, local_template
from infra.local.template import table_names
from infra.settings import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

CLIENT_ID = "local/dev"
ACCESS_TOKEN = "local-development-only-no-secret"
"""A client that may do everything, in the local stage only."""

AGENT_CLIENT_ID = "local/agent"
AGENT_ACCESS_TOKEN = "local-agent-only-no-secret-either"
AGENT_ID = "local"
"""The agent beside the machines in racks, and a client that may do just that."""

_ISSUER = {"clientId": "local/issuer", "accessToken": "local-issuer-only-no-secret-at-all"}

_EMULATOR_PYTHON = ROOT / ".emulator" / "bin" / "python"
_SETTINGS = STAGES["local"]


class InvocationError(Exception):
    """A function raised, or was not allowed to run."""


def auth_document() -> str:
    """The local stage's clients and roles, as the auth secret holds them."""
    return json.dumps(
        {
            "clients": [
                {"clientId": CLIENT_ID, "accessToken": ACCESS_TOKEN, "scopes": ["*"]},
                {**_ISSUER, "scopes": ["*"]},
                {
                    "clientId": AGENT_CLIENT_ID,
                    "accessToken": AGENT_ACCESS_TOKEN,
                    "scopes": [f"worker-registry:agent:{AGENT_ID}"],
                },
            ],
            "roles": [],
            "issuer": _ISSUER,
        }
    )


def scheduled_event(name: str, *, at: datetime) -> dict[str, Any]:
    """What EventBridge sends when the schedule of a function fires."""
    rule = _SETTINGS.resource_name(name)
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [f"arn:aws:events:{REGION}:{ACCOUNT}:rule/{rule}"],
        "detail": {},
    }


class LocalStage:
    """A context: everything is up inside, and gone afterwards.

    ``folder`` takes logs and temporary files, and is emptied at the start.  ``port`` is the front
    door's, 0 for a free one.  Without ``schedules`` nothing ticks but what ``invoke`` calls.
    With ``notices`` the simulated EC2 tells of its instances on the emulator's bus, as EC2 does;
    without, only lists do.
    ``clouds`` are control documents by the simulated cloud: ``ec2``, ``compute``, ``arm``.
    ``cloud_urls`` says where each is.
    """

    def __init__(
        self,
        *,
        folder: Path,
        port: int = 0,
        schedules: bool = True,
        tick_seconds: int | None = None,
        timings: Mapping[str, float] | None = None,
        notices: bool = False,
        clouds: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.root_url = f"http://{LOOPBACK}:{self.port}"
        self.table_names: list[str] = []
        self._schedules = schedules
        self._tick_seconds = tick_seconds or _SETTINGS.tick_seconds
        self._timings = {**_SETTINGS.timings, **(timings or {})}
        self._clouds = clouds or {}
        self._notices = notices
        self.cloud_urls = {cloud: f"http://{LOOPBACK}:{free_port()}" for cloud in CLOUDS}
        self.emulator_endpoint = f"http://{LOOPBACK}:{free_port()}"
        self._children: list[Child] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _start(self) -> None:
        template_file = local_template()
        started = [*(self._start_cloud(cloud) for cloud in CLOUDS), self._start_emulator()]
        for child, port in started:
            child.wait_for_port(port)
        deploy(template_file, endpoint=self.emulator_endpoint, parameters=self._parameters())
        self._fill_secrets()
        template = json.loads(template_file.read_text())
        self.table_names = table_names(template)
        self._open.enter_context(Front(template, emulator=self.emulator_endpoint, port=self.port))

    def _parameters(self) -> dict[str, str]:
        return {
            "RootUrl": self.root_url,
            "TickSeconds": str(self._tick_seconds),
            "Timings": json.dumps(self._timings),
            "Schedules": "ENABLED" if self._schedules else "DISABLED",
            **template_parameters(self.cloud_urls),
        }

    def _fill_secrets(self) -> None:
        secrets = {
            "auth": auth_document(),
            **{
                f"cloud-{provider.provider_id}": CREDENTIALS
                for provider in _SETTINGS.providers
                if provider.has_loop
            },
        }
        client = self.client("secretsmanager")
        for name, text in secrets.items():
            client.put_secret_value(SecretId=_SETTINGS.resource_name(name), SecretString=text)

    @property
    def ec2_url(self) -> str:
        """Where the simulated EC2 is."""
        return self.cloud_urls["ec2"]

    def start(self, name: str, arguments: list[str]) -> Child:
        """Start a module of ours that ends with the stage; its output goes to ``<name>.log``."""
        child = Child(
            name,
            [sys.executable, "-m", *arguments],
            environment=clean_environment(
                home=self.folder / name,
                path=str(Path(sys.executable).parent),
                PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "layers/shared/python")]),
                PYTHONUNBUFFERED="1",
            ),
            log=self.folder / f"{name}.log",
        )
        self._children.append(child)
        return child

    def _start_cloud(self, cloud: str) -> tuple[Child, int]:
        config = self.folder / f"{cloud}.json"
        config.write_text(json.dumps(control_document(cloud, self._clouds.get(cloud, {}))))
        port = self.cloud_urls[cloud].rpartition(":")[2]
        arguments = [f"infra.local.clouds.{cloud}", "--port", port, "--config", str(config)]
        if self._notices and cloud == "ec2":
            arguments += ["--events", self.emulator_endpoint]
        return self.start(cloud, arguments), int(port)

    def _start_emulator(self) -> tuple[Child, int]:
        port = self.emulator_endpoint.rpartition(":")[2]
        emulator = Child(
            "emulator",
            [str(_EMULATOR_PYTHON), "-I", str(Path(__file__).with_name("emulator.py"))],
            environment=clean_environment(
                home=self.folder / "emulator",
                path=str(_EMULATOR_PYTHON.parent),
                BIND_HOST=LOOPBACK,
                GATEWAY_PORT=port,
                AUTH="true",
                SFTP_ENABLED="0",
                IOT_MTLS_ENABLED="0",
                LAMBDA_ACCOUNT_CONCURRENCY="100",
                LOG_LEVEL="INFO",
                AWS_ENDPOINT_URL_EC2=self.ec2_url,
            ),
            log=self.folder / "emulator.log",
        )
        self._children.append(emulator)
        return emulator, int(port)

    def _stop(self) -> None:
        self._open.close()
        while self._children:
            self._children.pop().stop()

    def end(self, child: Child) -> None:
        """Stop one of those that were started."""
        self._children.remove(child)
        child.stop()

    def dead_children(self) -> list[Child]:
        """What has ended although the stage is up."""
        return [child for child in self._children if not child.is_running]

    def client(self, service: str) -> Any:
        """A client of the emulator that may do everything."""
        return aws_client(service, endpoint=self.emulator_endpoint)

    def queue_url(self, name: str) -> str:
        """The URL of a queue by the name the README uses, without the stage's prefix."""
        answered = self.client("sqs").get_queue_url(QueueName=_SETTINGS.resource_name(name))
        return str(answered["QueueUrl"])

    def tick(self, name: str, *, at: datetime) -> Any:
        """Call a function as its schedule does, with the time the schedule would name."""
        return self.invoke(name, scheduled_event(name, at=at))

    def invoke(self, name: str, event: Mapping[str, Any]) -> Any:
        """Call a function by its name without the stage's prefix, and return its answer.

        Raises ``InvocationError`` if the function did.
        """
        answered = self.client("lambda").invoke(
            FunctionName=_SETTINGS.resource_name(name), Payload=json.dumps(event)
        )
        payload = json.loads(answered["Payload"].read() or "null")
        if answered.get("FunctionError"):
            raise InvocationError(f"{name}: {payload}")
        return payload
