"""EC2 as a ``CloudProvider``: one client a region, one call for one order.

Retries are nobody's business here: whoever called knows whether repeating is wise, and the next
tick does.  Where to read next: ``launch`` (an order as a request), ``listing`` (a region as
sightings), ``by_id`` (why one bad id spoils nothing), ``errors`` (what EC2's codes mean).
"""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING

from botocore.config import Config

from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    NotReachedError,
)
from worker_manager.core.model import MachineStatus
from worker_manager.providers.answers import gone
from worker_manager.providers.aws.by_id import Outcome, call_by_id
from worker_manager.providers.aws.errors import cloud_errors
from worker_manager.providers.aws.launch import (
    check_parameters,
    encoded_user_data,
    launched,
    run_instances_request,
)
from worker_manager.providers.aws.leftovers import delete_volumes, list_volumes
from worker_manager.providers.aws.listing import (
    find_deployment,
    list_deployment,
    read_sightings,
)
from worker_manager.providers.aws.reading import read_only_needed, read_times_fast
from worker_manager.providers.protocol import Rebooted, Terminated
from worker_manager.providers.visit import CONNECT_TIMEOUT, READ_TIMEOUT, Visits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    import boto3
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import DescribeInstancesResultTypeDef

    from worker_manager.core.model import (
        LaunchConfigHead,
        LaunchOrder,
        Location,
        Sighting,
        Worker,
        WorkerKey,
    )
    from worker_manager.providers.protocol import Launched, Leftover, Removed

MAX_CONNECTIONS = 16
"""A client serves this many threads without opening connections anew."""


class AwsProvider:
    """Our machines on EC2.  A location is a region, which is also the worker group.

    ``deployment`` is the tag value by which our machines are told from everybody else's.
    ``session`` brings the credentials.  No call outlasts ``CONNECT_TIMEOUT`` and
    ``read_timeout`` (per read) together.
    """

    def __init__(
        self,
        *,
        provider_id: str,
        deployment: str,
        session: boto3.Session,
        read_timeout: timedelta = READ_TIMEOUT,
    ) -> None:
        self.provider_id = provider_id
        self._deployment = deployment
        self._session = session
        read_times_fast(session)
        self._config = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=CONNECT_TIMEOUT.total_seconds(),
            read_timeout=read_timeout.total_seconds(),
            max_pool_connections=MAX_CONNECTIONS,
        )
        self._visits = Visits(
            parallel=MAX_CONNECTIONS, read_timeout=read_timeout, least_read=read_timeout
        )
        self._clients: dict[Location, EC2Client] = {}
        self._lock = Lock()

    def locations(self, heads: Iterable[LaunchConfigHead]) -> frozenset[Location]:
        """The regions of these launch configs."""
        return frozenset(head.location for head in heads)

    def instances(self, location: Location) -> Iterator[Sighting]:
        """Every machine of our deployment in a region that is not gone, in one list."""
        return list_deployment(self._client(location), location, deployment=self._deployment)

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """What EC2 knows of these workers; ``None`` for one that is terminated or forgotten.

        Raises the first ``CloudError`` that left a worker's fate unknown.
        """
        client = self._client(location)
        keys = {worker.key.worker_id: worker.key for worker in workers}
        found: dict[WorkerKey, Sighting] = {}

        def keep(answer: DescribeInstancesResultTypeDef) -> None:
            for seen in read_sightings(answer, location, known=keys):
                if seen.status is not MachineStatus.GONE:
                    found[seen.key] = seen

        outcome = call_by_id(
            list(keys), lambda ids: client.describe_instances(InstanceIds=ids), keep=keep
        )
        for error in outcome.failed.values():
            raise error
        return {key: found.get(key) for key in keys.values()}

    def recognise(self, location: Location, worker_ids: Sequence[str]) -> Sequence[Sighting]:
        """Those of these instances that are our deployment's, terminated ones included.

        A terminated instance keeps its tags for a short while only; without them it is nobody's.
        """
        return find_deployment(
            self._client(location),
            location,
            deployment=self._deployment,
            instance_ids=worker_ids,
        )

    def launch(self, order: LaunchOrder) -> Launched:
        """Launch up to ``order.count`` machines in one call, with the order's id as its token."""
        client = self._client(order.location)
        request = run_instances_request(order)
        with cloud_errors(launching=True, hide=encoded_user_data(request)):
            check_parameters(client, request)
            answer = client.run_instances(**request)
            return launched(order, answer)

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """Terminate machines, region by region; unknown to EC2 is as good as terminated."""
        by_location: defaultdict[Location, dict[str, WorkerKey]] = defaultdict(dict)
        for worker in workers:
            by_location[worker.location][worker.key.worker_id] = worker.key
        done: set[WorkerKey] = set()
        failed: dict[WorkerKey, CloudError] = {}
        for location, keys in by_location.items():
            outcome = self._terminate(location, list(keys))
            done.update(keys[name] for name in outcome.answered | outcome.gone)
            failed.update({keys[name]: error for name, error in outcome.failed.items()})
        return Terminated(frozenset(done), failed)

    def reboot(self, workers: Sequence[Worker]) -> Rebooted:
        """Reboot machines, region by region; one that does not shut down is cut off by EC2.

        EC2 says yes also to a terminated instance, so it is looked first which ones there are.
        """
        by_location: defaultdict[Location, list[Worker]] = defaultdict(list)
        for worker in workers:
            by_location[worker.location].append(worker)
        done: set[WorkerKey] = set()
        failed: dict[WorkerKey, CloudError] = {}
        for location, those in by_location.items():
            keys = {worker.key.worker_id: worker.key for worker in those}
            outcome = self._reboot(location, those)
            done.update(keys[name] for name in outcome.answered)
            failed.update({keys[name]: error for name, error in outcome.failed.items()})
            failed.update({keys[name]: gone(name) for name in outcome.gone})
        return Rebooted(frozenset(done), failed)

    def leftovers(self, location: Location, places: Collection[str] = ()) -> Iterator[Leftover]:
        """Volumes of our deployment in a region that no instance uses; EC2 has no ``places``."""
        return list_volumes(self._client(location), deployment=self._deployment)

    def remove(self, location: Location, leftovers: Sequence[Leftover]) -> Removed:
        """Delete such volumes; unknown to EC2 is as good as deleted."""
        return delete_volumes(self._client(location), self._visits.begin(), leftovers)

    def _terminate(self, location: Location, ids: list[str]) -> Outcome:
        """Terminate instances of one region."""
        client = self._client(location)
        return call_by_id(
            ids, lambda some: client.terminate_instances(InstanceIds=some), keep=lambda _: None
        )

    def _reboot(self, location: Location, workers: Sequence[Worker]) -> Outcome:
        """Reboot instances of one region, as far as they exist."""
        try:
            found = self.lookup(location, workers)
        except CloudError as error:
            ids = [worker.key.worker_id for worker in workers]
            return Outcome(failed=dict.fromkeys(ids, _nothing_done(error)))
        client = self._client(location)
        outcome = call_by_id(
            [key.worker_id for key, seen in found.items() if seen is not None],
            lambda some: client.reboot_instances(InstanceIds=some),
            keep=lambda _: None,
        )
        outcome.gone |= {key.worker_id for key, seen in found.items() if seen is None}
        return outcome

    def _client(self, location: Location) -> EC2Client:
        """The region's client.  Making one is not safe among threads, so one thread at a time."""
        with self._lock:
            if location not in self._clients:
                with cloud_errors(launching=True):
                    client = self._session.client("ec2", region_name=location, config=self._config)
                read_only_needed(client)
                self._clients[location] = client
            return self._clients[location]


def _nothing_done(error: CloudError) -> CloudError:
    """The error of a look, after which nothing was asked for."""
    if isinstance(error, CloudUnavailableError):
        return NotReachedError(str(error), code=error.code)
    return error
