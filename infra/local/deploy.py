"""Deploys the synthesised template into a fresh emulator, as the CDK's own tool would on AWS."""

from __future__ import annotations

import io
import json
import sys
import time
import zipfile
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from infra.local.template import for_emulator, layer_keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ACCOUNT = "000000000000"
REGION = "us-east-1"
STACK = "WorkerManager"

_BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
_BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"


class DeployError(Exception):
    """The emulator could not make what the template describes."""


def aws_client(service: str, *, endpoint: str) -> Any:
    """A client of the emulator with its all-powerful credentials."""
    return boto3.client(
        service,  # type: ignore[call-overload]  # any service
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(
            max_pool_connections=64,
            read_timeout=130,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
        ),
    )


def zipped(folder: Path) -> bytes:
    """The folder's files as a zip, compiled ones left out."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(folder))
    return content.getvalue()


def linked(folder: Path) -> bytes:
    """A layer of one line that says where the real one lies.

    The emulator unpacks a layer anew for every worker process, which takes seconds for a big one.
    """
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    line = f"import sys; sys.path.insert(0, {str(folder.resolve() / 'python')!r})\n"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(f"python/lib/{python}/site-packages/_linked.pth", line)
    return content.getvalue()


def deploy(template_file: Path, *, endpoint: str, parameters: Mapping[str, str]) -> None:
    """Upload the assets and create the stack.  ``DeployError`` says which resource failed."""
    template = json.loads(template_file.read_text())
    s3 = aws_client("s3", endpoint=endpoint)
    _bootstrap(s3, aws_client("ssm", endpoint=endpoint))
    _upload_assets(s3, template_file, layers=layer_keys(template))
    s3.put_object(Bucket=_BUCKET, Key="template.json", Body=json.dumps(for_emulator(template)))
    cloudformation = aws_client("cloudformation", endpoint=endpoint)
    cloudformation.create_stack(
        StackName=STACK,
        TemplateURL=f"{endpoint}/{_BUCKET}/template.json",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
        Parameters=[
            {"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()
        ],
    )
    _wait(cloudformation)


def _bootstrap(s3: Any, ssm: Any) -> None:
    """What ``cdk bootstrap`` leaves in an account, as far as the template looks for it."""
    s3.create_bucket(Bucket=_BUCKET)
    ssm.put_parameter(Name=_BOOTSTRAP_VERSION, Value="30", Type="String", Overwrite=True)


def _upload_assets(s3: Any, template_file: Path, *, layers: set[str]) -> None:
    listed = template_file.with_name(template_file.name.replace(".template.", ".assets."))
    for asset in json.loads(listed.read_text())["files"].values():
        source = template_file.parent / asset["source"]["path"]
        for destination in asset["destinations"].values():
            key = destination["objectKey"]
            if asset["source"]["packaging"] == "zip":
                body = linked(source) if key in layers else zipped(source)
                s3.put_object(Bucket=_BUCKET, Key=key, Body=body)


def _wait(cloudformation: Any, *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]["StackStatus"]
        if status == "CREATE_COMPLETE":
            return
        if not status.endswith("CREATE_IN_PROGRESS"):
            raise DeployError(f"{status}: {_failures(cloudformation)}")
        time.sleep(0.02)
    raise DeployError(f"not created within {seconds} s")


def _failures(cloudformation: Any) -> str:
    events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
    return "; ".join(
        f"{event['LogicalResourceId']} ({event['ResourceType']}): "
        f"{event.get('ResourceStatusReason', 'no reason given')}"
        for event in events
        if event["ResourceStatus"].endswith("FAILED")
    )
