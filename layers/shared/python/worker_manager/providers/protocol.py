"""What a cloud must be able to do.  Everything else is decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import (
        LaunchConfigHead,
        LaunchOrder,
        Location,
        Sighting,
        Worker,
        WorkerKey,
    )


@dataclass(frozen=True, slots=True)
class Launched:
    """What an order brought: the machines, and what was refused beyond them.

    ``refused`` machines of the order do not exist and never will; ``error`` says why.
    """

    machines: tuple[Sighting, ...] = ()
    refused: int = 0
    error: CloudError | None = None


@dataclass(frozen=True, slots=True)
class Terminated:
    """Which workers the cloud is now taking away (or had already), and which it could not."""

    done: frozenset[WorkerKey] = frozenset()
    failed: Mapping[WorkerKey, CloudError] = field(default_factory=dict)


class CloudProvider(Protocol):
    """What a cloud must be able to do.  Nothing more is asked of it.

    Every method may raise a ``CloudError``; each cloud call has a deadline.
    """

    provider_id: str

    def locations(self, heads: Iterable[LaunchConfigHead]) -> frozenset[Location]:
        """The list calls that together see every machine of these launch configs."""
        ...

    def instances(self, location: Location) -> Iterator[Sighting]:
        """One list of all our machines there, to its end or an error."""
        ...

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """Ask for the few that a list missed; gone is ``None``; one bad id spoils nothing."""
        ...

    def launch(self, order: LaunchOrder) -> Launched:
        """The same order gives the same machines; partial success is a result, not an error.

        Raises a ``CloudError`` when nothing was launched (or, for ``CloudUnavailableError``,
        when nobody knows).
        """
        ...

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """Take machines away; already gone counts as done."""
        ...


@runtime_checkable
class Recognises(Protocol):
    """A cloud that tells of machines of its own accord, by ids that may be anybody's."""

    def recognise(self, location: Location, worker_ids: Sequence[str]) -> Sequence[Sighting]:
        """Those of these machines that are our deployment's, also the gone ones it still knows.

        May raise a ``CloudError``; has a deadline.
        """
        ...
