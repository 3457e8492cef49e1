"""What stands in the simulated clouds, as they themselves know it, whatever our tables say.

Used by ``demo`` to judge.  Read next: the ``control`` module of each cloud.
"""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker_manager.providers.aws.listing import POOL_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_RUNNING = frozenset({"pending", "provisioning", "staging", "starting", "running"})
"""States, in lower case, in which a machine works or is about to."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One that is not gone: in which cloud, whose, and whether it runs or is about to."""

    cloud: str
    name: str
    pool_id: str
    runs: bool
    is_spot: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """Machines, and how many other things of each kind there are that somebody pays for."""

    machines: tuple[Machine, ...] = ()
    others: Counter[str] = field(default_factory=Counter)

    @property
    def running(self) -> Counter[str]:
        """Machines that run or are about to, by pool."""
        return Counter(machine.pool_id for machine in self.machines if machine.runs)

    def in_words(self) -> str:
        """What there is, empty for nothing."""
        counted = Counter(f"{machine.cloud} machines" for machine in self.machines) + self.others
        return ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items()))


def look(urls: Mapping[str, str]) -> Standing:
    """Ask these clouds; ``urls`` are by name."""
    machines: list[Machine] = []
    others: Counter[str] = Counter()
    for cloud, url in urls.items():
        read_machines, read_others = _READERS[cloud]
        machines += read_machines(url)
        others += Counter({f"{cloud} {kind}": count for kind, count in read_others(url)})
    return Standing(tuple(machines), others)


def tell(url: str, document: Mapping[str, Any]) -> None:
    """Do something to a cloud: a document for its control side."""
    request = urllib.request.Request(
        f"{url}/_control", data=json.dumps(document).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=10):
        return


def _ec2(url: str) -> Iterable[Machine]:
    for found in _get(f"{url}/_control/instances"):
        if found["state"] != "terminated":
            yield _machine("ec2", found["instance_id"], found, pool_id=found["tags"].get(POOL_TAG))


def _compute(url: str) -> Iterable[Machine]:
    for found in _get(f"{url}/_control/instances"):
        labels = found["labels"]
        parts = (labels.get(f"worker-manager-{part}") for part in ("provisioner", "worker-type"))
        yield _machine(
            "compute", found["instance_id"], found, pool_id="/".join(filter(None, parts))
        )


def _arm(url: str) -> Iterable[Machine]:
    for found in _get(f"{url}/_control/resources"):
        if found["kind"] == "virtualMachines" and found["state"] != "Deleting":
            seen = {**found, "state": found["power"]}
            yield _machine("arm", found["name"], seen, pool_id=found["tags"].get(POOL_TAG))


def _machine(cloud: str, name: str, found: Mapping[str, Any], *, pool_id: str | None) -> Machine:
    runs = found["state"].lower() in _RUNNING
    return Machine(cloud, name, pool_id or "", runs, bool(found["spot"]))


def _volumes(url: str) -> Iterable[tuple[str, int]]:
    yield "volumes", sum(_get(f"{url}/_control/state")["left_over"].values())


def _disks(url: str) -> Iterable[tuple[str, int]]:
    yield "disks", sum(_get(f"{url}/_control/state")["disks"].values())


def _parts(url: str) -> Iterable[tuple[str, int]]:
    for kind, states in _get(f"{url}/_control/state")["resources"].items():
        if kind != "virtualMachines":
            yield kind, sum(states.values())


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


_READERS: Mapping[
    str,
    tuple[Callable[[str], Iterable[Machine]], Callable[[str], Iterable[tuple[str, int]]]],
] = {"ec2": (_ec2, _volumes), "compute": (_compute, _disks), "arm": (_arm, _parts)}
"""What reads each cloud: its machines, and how many of what else there are."""
