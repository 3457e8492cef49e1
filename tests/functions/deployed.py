"""The local stage's template, deployed into moto: what functions use, and their environments.

Tables, queues, secrets, bus and bucket are made as the template says, and each function's
variables are filled in as CloudFormation would.  No function is deployed: a test calls its handler
with exactly that environment, and each AWS call must be one that the function's role allows.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from threading import local
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import boto3
from botocore.client import BaseClient
from botocore.loaders import Loader, create_loader
from botocore.session import Session
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sqs.models import sqs_backends

from infra.app import synthesise
from infra.settings import STAGES, PulseSettings
from infra.stack import Code
from tests.events import an_sqs_event
from tests.functions.lambda_context import LambdaContext
from tests.functions.roles import NotAllowedError, Role
from worker_manager import wiring

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
BOOK = {
    "clients": [{"clientId": "test/root", "accessToken": TOKEN, "scopes": ["*"]}],
    "issuer": {"clientId": "test/issuer", "accessToken": TOKEN},
}
SECRETS = {
    "auth": json.dumps(BOOK),
    "cloud-azure": "{}",
    "cloud-google": "{}",
    "pulse": json.dumps({"username": "guest", "password": "guest"}),
}
BUILDERS = tuple(
    build
    for module in iter_modules(wiring.__path__, "worker_manager.wiring.")
    for build in vars(import_module(module.name)).values()
    if hasattr(build, "cache_clear")
)


ELSEWHERE = local()
"""Says in ``running`` that a thread is no part of the function that is being called."""
ATTRIBUTES = ("FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")
SURROUNDINGS = ("AWS_", "TZ", "PATH", "HOME", "MOTO")


@cache
def local_template() -> dict[str, Any]:
    """The local stage with all that is optional, synthesised once; layers are not needed for it."""
    with TemporaryDirectory() as folder:
        top = Path(folder)
        layer = top / "layer"
        layer.mkdir()
        (layer / "nothing.txt").write_text("")
        code = Code(
            functions=ROOT / "functions",
            shared_layer=layer,
            runtime_layer=layer,
            pulse_layer=layer,
            cloud_layers={"azure": layer, "google": layer},
            hash_of=lambda folder: folder.name,
        )
        settings = replace(STAGES["local"], pulse=PulseSettings(url="amqp://127.0.0.1:9"))
        file = synthesise(settings, code=code, outdir=top / "out", in_place=True)
        template: dict[str, Any] = json.loads(file.read_text())
        return template


def function_names() -> list[str]:
    """Every function of the stage, without the stage's prefix."""
    return sorted(_functions())


def folder_of(name: str) -> str:
    """Where a function's handler is, by the function's name."""
    return re.sub(r"-(aws|azure|google)$", "", name).replace("-", "_")


def _functions() -> dict[str, Mapping[str, Any]]:
    return {
        found["FunctionName"].removeprefix("wm-local-"): found
        for _, found in _of_type("AWS::Lambda::Function")
    }


def _of_type(kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for logical_id, resource in local_template()["Resources"].items():
        if resource["Type"] == kind:
            yield logical_id, resource["Properties"]


@cache
def _loader(_path: str | None = None) -> Loader:
    """Containers make sessions of their own; what those read from disk is read once."""
    return create_loader()


@cache
def _client(service: str) -> Any:
    """A client for all stages; boto3's own session is made anew by each mock."""
    session = Session()
    session.register_component("data_loader", _loader())
    make: Any = boto3.Session(botocore_session=session).client
    return make(service)


class DeployedStage:
    """Everything but functions, in moto; ``parameters`` as at a deployment."""

    def __init__(self, parameters: Mapping[str, str]) -> None:
        declared = local_template()["Parameters"]
        given = {name: str(found.get("Default", "")) for name, found in declared.items()}
        self._refs = {**given, **parameters, "AWS::Region": "us-east-1"}
        self.sqs = _client("sqs")
        self.queue_urls: dict[str, str] = {}
        self._create_tables()
        self._create_queues()
        self._create_the_rest()

    def _create_tables(self) -> None:
        client = _client("dynamodb")
        for logical_id, found in _of_type("AWS::DynamoDB::Table"):
            names = ("TableName", "KeySchema", "AttributeDefinitions", "BillingMode")
            indexes = {k: v for k, v in found.items() if k == "LocalSecondaryIndexes"}
            client.create_table(**{name: found[name] for name in names}, **indexes)
            self._refs[logical_id] = found["TableName"]

    def _create_queues(self) -> None:
        for logical_id, found in _of_type("AWS::SQS::Queue"):
            name = found["QueueName"]
            attributes = {k: str(found[k]).lower() for k in ATTRIBUTES[:2] if k in found}
            attributes |= {k: found[k] for k in ATTRIBUTES[2:] if k in found}
            url = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
            self._refs[logical_id] = self.queue_urls[name.removeprefix("wm-local-")] = url

    def _create_the_rest(self) -> None:
        secrets = _client("secretsmanager")
        for logical_id, found in _of_type("AWS::SecretsManager::Secret"):
            text = SECRETS.get(found["Name"].removeprefix("wm-local-"), "generated")
            made = secrets.create_secret(Name=found["Name"], SecretString=text)
            self._refs[logical_id] = made["ARN"]
        for logical_id, found in _of_type("AWS::Events::EventBus"):
            _client("events").create_event_bus(Name=found["Name"])
            self._refs[logical_id] = found["Name"]
        for logical_id, _ in _of_type("AWS::S3::Bucket"):
            name = logical_id.lower()
            _client("s3").create_bucket(Bucket=name)
            self._refs[logical_id] = name

    def environment(self, name: str) -> dict[str, str]:
        """A function's variables, filled in."""
        given = _functions()[name]["Environment"]["Variables"]
        return {variable: self._text(value) for variable, value in given.items()}

    def _text(self, value: Any) -> str:
        match value:
            case str():
                return value
            case {"Ref": name}:
                return self._refs[name]
            case {"Fn::Join": [separator, parts]}:
                return str(separator).join(self._text(part) for part in parts)
            case _:
                raise AssertionError(f"nothing is known of {value}")

    @contextmanager
    def container(self, name: str, **changes: str | None) -> Iterator[None]:
        """A new container of a function: its environment, with ``changes``, and nothing built."""
        kept = {k: v for k, v in os.environ.items() if k.startswith(SURROUNDINGS)}
        wanted = {**kept, **self.environment(name), **changes}
        present = {k: v for k, v in wanted.items() if v is not None}
        with (
            patch.dict(os.environ, present, clear=True),
            patch("botocore.session.create_loader", _loader),
            self._held_to(name),
        ):
            _forget()
            try:
                yield
            finally:
                _forget()

    @contextmanager
    def _held_to(self, name: str) -> Iterator[None]:
        """Calls to AWS are checked against a function's role before they are made."""
        role = Role(local_template(), _functions()[name])
        ids = {value: logical_id for logical_id, value in self._refs.items()}
        make: Any = BaseClient._make_api_call  # type: ignore[attr-defined]
        refused: list[str] = []

        def checked(client: BaseClient, operation: str, params: Any) -> Any:
            if not getattr(ELSEWHERE, "running", False):
                try:
                    role.check(client.meta.service_model.service_name, operation, params, ids)
                except NotAllowedError as error:
                    refused.append(str(error))
                    raise
            return make(client, operation, params)

        with patch.object(BaseClient, "_make_api_call", checked):
            yield
        assert not refused, f"{name} may not: {refused}"

    def call(self, name: str, event: Mapping[str, Any], **changes: str | None) -> Any:
        """Call a function's handler in a container of its own."""
        with self.container(name, **changes):
            handler = import_module(f"functions.{folder_of(name)}.handler")
            return handler.handle(event, LambdaContext())

    def drain(self, queue: str) -> list[dict[str, Any]]:
        """Take every message that is due from a queue, each as the event it becomes."""
        url = self.queue_urls[queue]
        events = []
        while found := self._receive(url):
            for message in found:
                group = message.get("Attributes", {}).get("MessageGroupId", "")
                events.append(
                    an_sqs_event([message["Body"]], queue=f"wm-local-{queue}", group=group)
                )
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return events

    def hurry(self, queue: str) -> None:
        """Let the delays of all messages of a queue have passed."""
        found = sqs_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].queues[f"wm-local-{queue}"]
        for message in found._messages:
            message.delayed_until = 0

    def waiting(self, queue: str) -> tuple[int, int]:
        """How many messages a queue has that are due, and that are delayed."""
        answer = self.sqs.get_queue_attributes(
            QueueUrl=self.queue_urls[queue], AttributeNames=["All"]
        )
        found = answer["Attributes"]
        return (
            int(found["ApproximateNumberOfMessages"]),
            int(found["ApproximateNumberOfMessagesDelayed"]),
        )

    def _receive(self, url: str) -> list[Any]:
        answer = self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"]
        )
        return list(answer.get("Messages", ()))


def _forget() -> None:
    for build in BUILDERS:
        build.cache_clear()
