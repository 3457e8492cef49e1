"""What a cloud must be able to do.  Everything else is decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    import boto3

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import (
        Json,
        LaunchConfigHead,
        LaunchOrder,
        Location,
        Sighting,
        Worker,
        WorkerKey,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """What a provider is started with.

    ``deployment`` marks our machines among those of others.  ``options`` are public facts of the
    provider (a project, a subscription), ``secret`` reads the text of its credentials.
    ``endpoint`` is where the cloud is instead of at its own address: on this machine only.
    ``session`` brings the credentials of our own AWS account.
    """

    provider_id: str
    deployment: str
    options: Mapping[str, str] = field(default_factory=dict)
    secret: Callable[[], str]
    endpoint: str | None = None
    session: boto3.Session | None = None
    read_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Launched:
    """What an order brought: the machines, and what was refused beyond them.

    ``refused`` machines of the order do not exist and never will; ``error`` says why, and
    ``not_made`` which they are, where their names are ours.  ``unanswered`` says why it is not
    known of all the others: the order is to be sent again.  ``follow_after`` is when to look at
    how the machines' creation went on; ``None`` if what was answered is final.
    """

    machines: tuple[Sighting, ...] = ()
    refused: int = 0
    error: CloudError | None = None
    unanswered: CloudError | None = None
    not_made: frozenset[WorkerKey] = frozenset()
    follow_after: timedelta | None = None


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


@runtime_checkable
class Names(Protocol):
    """A cloud that takes a machine's name from us, so that its row is written before the call."""

    def machines(self, order: LaunchOrder) -> Sequence[Sighting]:
        """What an order is going to make; nothing is asked of the cloud.

        Raises ``InvalidLaunchConfigError`` for a launch config that could make nothing.
        """
        ...


@dataclass(frozen=True, slots=True)
class Made:
    """The machine exists for sure; ``identity`` is what is known of it from now on."""

    identity: Json


@dataclass(frozen=True, slots=True)
class Pending:
    """Its creation goes on; look again ``after`` that long."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Failed:
    """Its creation failed after the call was accepted; ``is_gone`` if no machine came of it."""

    error: CloudError
    is_gone: bool = False


Step = Made | Pending | Failed


@runtime_checkable
class Stepwise(Protocol):
    """A cloud that accepts a launch first, and makes the machine afterwards, or fails to."""

    def follow(self, location: Location, workers: Sequence[Worker]) -> Mapping[WorkerKey, Step]:
        """How far these machines' creation is, and the next thing done that it needs.

        ``workers`` are whole rows.  One machine's trouble is left out, and asked again; raises a
        ``CloudError`` when nothing could be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rebooted:
    """Which workers' machines boot anew from now on, and which were not told to, or maybe.

    Among the errors, ``MachineGoneError`` is one for whom there is nothing to reboot, and
    ``CloudUnavailableError`` (but for ``NotReachedError``) says that it may have been done.
    """

    done: frozenset[WorkerKey] = frozenset()
    failed: Mapping[WorkerKey, CloudError] = field(default_factory=dict)


@runtime_checkable
class Reboots(Protocol):
    """A cloud that lets a machine boot anew: the same machine, with its disks and addresses."""

    def reboot(self, workers: Sequence[Worker]) -> Rebooted:
        """Begin to reboot machines; that they come up again is not waited for.

        Doing it again does it again.  One machine's trouble spoils nothing for the others.
        """
        ...


@dataclass(frozen=True, slots=True)
class SlotsOf:
    """A store of the cloud with room for ``most`` records, one for each machine in the making."""

    name: str
    most: int


@runtime_checkable
class Slots(Protocol):
    """A cloud that keeps a record of each launch, in a place that pools share and that fills up."""

    def slots(self, order: LaunchOrder) -> SlotsOf | None:
        """Where each machine of an order needs room until its creation is over; ``None`` if not."""
        ...

    def slots_of(self, worker: Worker) -> str | None:
        """Name of the store where a worker's record stood, or stands."""
        ...


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something of our deployment that no machine uses.

    ``kind`` is a word for people (``disk``, ``nic``, ``ip``, ``deployment``, ``volume``);
    ``since`` is when it was made, as far as it tells; ``worker`` and ``pool_id`` whose it was.
    """

    kind: str
    resource_id: str
    since: datetime | None = None
    worker: WorkerKey | None = None
    pool_id: str | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """Which leftovers (by resource id) are gone or going now, and which could not be removed."""

    done: frozenset[str] = frozenset()
    failed: Mapping[str, CloudError] = field(default_factory=dict)


@runtime_checkable
class Sweeps(Protocol):
    """A cloud in which things outlive the machines that they were made for."""

    def leftovers(self, location: Location, places: Collection[str] = ()) -> Iterator[Leftover]:
        """Everything of our deployment there that no machine uses, to its end or an error.

        ``places`` are stores (see ``Slots``) that hold, or held, records of ours.
        """
        ...

    def remove(self, location: Location, leftovers: Sequence[Leftover]) -> Removed:
        """Delete them, what hangs on others after those; already gone counts as done."""
        ...
