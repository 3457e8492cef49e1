"""Template deployments: the request that begins one, and what its record says of it.

A deployment is a record in a resource group, which has room for 800; the record is deleted as soon
as the outcome is known.  What a template makes is its own affair, but for the parameters that we
set; a template must put ``tags`` on all that it makes, and call its machine ``vmName``.
Where to read next: ``launching`` (who begins them), ``following`` (who sees to their end).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import CloudUnavailableError, InvalidLaunchConfigError
from worker_manager.providers.azure.arm import deployment_path
from worker_manager.providers.azure.errors import MAX_TEXT_CHARS, failure, says_little, words
from worker_manager.providers.azure.tags import KEEP_TAG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import Json, LaunchOrder
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.azure.naming import MachineNames
    from worker_manager.providers.visit import TimeLeft

FULL = 800
"""Records that a resource group has room for ("Deployment history quota")."""
MOST_RECORDS = 400
"""So many launches of ours use a group at once.

A slot is free when its record's deletion was accepted, which takes a while, and the next launch
makes a record meanwhile: as many again may be on their way out."""

ACTIVE_CODE = "DeploymentActive"
SUCCEEDED = "succeeded"
FAILED = frozenset({"failed", "canceled"})
ENDED = FAILED | {SUCCEEDED}


def deployment(
    order: LaunchOrder,
    names: MachineNames,
    *,
    tags: Mapping[str, str],
    password: str,
    custom_data: str,
) -> dict[str, Any]:
    """The request that deploys the template of an order for one machine.

    ``armDeployment`` goes as it is, but for the parameters that are the machine's own.
    """
    template: Json = order.body["armDeployment"]
    ours = {
        "tags": dict(tags),
        "vmName": names.machine,
        "computerName": names.computer,
        "adminUsername": names.user,
        "adminPassword": password,
        "customData": custom_data,
    }
    return {
        "tags": {**tags, KEEP_TAG: "true"} if keeps_record(order) else dict(tags),
        "properties": {
            **template,
            "parameters": {
                **(template.get("parameters") or {}),
                **{name: {"value": value} for name, value in ours.items()},
            },
        },
    }


def keeps_record(order: LaunchOrder) -> bool:
    """Whether its launch config wants the records of deployments kept."""
    return order.manager.get("keepDeployment") is True


def state_of(record: Json) -> str:
    """How far a deployment is, in lower case."""
    return str(record["properties"].get("provisioningState", "")).lower()


def has_ended(record: Json) -> bool:
    """Whether a deployment makes nothing more."""
    return state_of(record) in ENDED


def why_failed(arm: Arm, record: Json, *, resource_group: str, timeout: TimeLeft) -> CloudError:
    """Why a deployment failed, from its record, or from its operations if the record is silent.

    May raise the SDK's errors.
    """
    answer = record["properties"].get("error") or {}
    if state_of(record) == "canceled" and not answer:
        return CloudUnavailableError("Canceled: its deployment was cancelled", code="Canceled")
    if not says_little(answer):
        return failure(answer)
    path = f"{deployment_path(resource_group, record['name'])}/operations"
    failed = [
        operation["properties"]
        for page in arm.pages(path, timeout=timeout)
        for operation in page
        if str(operation["properties"].get("provisioningState", "")).lower() in FAILED
    ]
    return _why_operations_failed(failed) if failed else failure(answer)


def made_none(machine: str, record: Json) -> CloudError:
    """Why a deployment that succeeded left no machine of that name."""
    outputs = record["properties"].get("outputResources") or ()
    if any(str(one.get("id", "")).lower().endswith(f"/{machine}") for one in outputs):
        return CloudUnavailableError(
            "MachineVanished: the machine was deployed, and is gone", code="MachineVanished"
        )
    return InvalidLaunchConfigError(
        "NoMachine: the template made no machine named by its parameter vmName", code="NoMachine"
    )


def _why_operations_failed(failed: Sequence[Json]) -> CloudError:
    """One error for the operations that failed: the first telling one's kind, the words of all."""
    answers = [one.get("statusMessage") or {"code": one.get("statusCode")} for one in failed]
    error = failure({"details": answers})
    told = "; ".join(
        f"{_target(one)}: {words(answer)}" for one, answer in zip(failed, answers, strict=True)
    )
    error.args = (told[:MAX_TEXT_CHARS],)
    return error


def _target(operation: Json) -> str:
    """What an operation was about."""
    target = operation.get("targetResource") or {}
    return f"{target.get('resourceType', 'resource')} {target.get('resourceName', '')}".strip()
