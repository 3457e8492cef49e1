"""The stock Python client calls every method of the worker manager, signing for real."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import taskcluster  # type: ignore[import-untyped]
import taskcluster.aio  # type: ignore[import-untyped]

from infra.local.samples import client_options, launch_config
from tests.journeys.world import FULL_REGION, a_pool, in_an_hour, key_of, until

if TYPE_CHECKING:
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

STATIC_SECRET = "a-static-secret-of-forty-four-characters-000"


def a_static_pool(**config: Any) -> dict[str, Any]:
    return {
        "providerId": "static",
        "description": "machines in a rack",
        "owner": "owner@example.com",
        "emailOnError": False,
        "config": {"workerConfig": {"capacity": 1}, **config},
    }


def refusal(call: Any) -> taskcluster.exceptions.TaskclusterRestFailure:
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as caught:
        call()
    return caught.value


def a_span() -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    return now - timedelta(minutes=5), now + timedelta(hours=1)


class TestSignsOfLife:
    def test_it_pings(self, world: World) -> None:
        answer = world.anonymous(taskcluster.WorkerManager).ping()
        assert answer["alive"] is True
        assert answer["uptime"] >= 0

    def test_it_tells_its_version(self, world: World) -> None:
        assert set(world.manager.version()) == {"version", "source", "commit", "build"}

    def test_its_heart_beats(self, world: World) -> None:
        assert world.manager.heartbeat() == {}
        assert world.manager.lbheartbeat() == {}

    def test_it_lists_its_providers(self, world: World) -> None:
        assert world.manager.listProviders() == {
            "providers": [
                *(
                    {"providerId": cloud, "providerType": cloud, "status": {"state": "ok"}}
                    for cloud in ("aws", "google", "azure")
                ),
                {"providerId": "static", "providerType": "static"},
            ]
        }


class TestPools:
    def test_a_pool_is_created_read_changed_and_deleted(self, world: World) -> None:
        pool_id, definition = "journey/defined", a_pool()
        created = world.manager.createWorkerPool(pool_id, definition)
        assert created["workerPoolId"] == pool_id
        assert created["config"] == definition["config"]
        assert world.manager.workerPool(pool_id) == created

        [launch_config_before] = definition["config"]["launchConfigs"]
        options = {**launch_config_before["workerManager"], "maxCapacity": 2}
        changed = {
            **definition,
            "description": "changed",
            "config": {
                **definition["config"],
                "launchConfigs": [{**launch_config_before, "workerManager": options}],
            },
        }
        updated = world.manager.updateWorkerPool(pool_id, changed)
        assert updated["description"] == "changed"
        assert updated["config"]["launchConfigs"][0]["workerManager"] == options
        assert updated["created"] == created["created"]
        assert updated["lastModified"] > created["lastModified"]

        assert world.manager.deleteWorkerPool(pool_id)["providerId"] == "null-provider"
        wanted = {
            "worker-pool-created",
            "worker-pool-updated",
            "launch-config-created",
            "launch-config-updated",
            "launch-config-archived",
        }
        until(lambda: world.events.names(pool_id) >= wanted)
        assert {
            event["launchConfigId"]
            for event in world.events.of(pool_id)
            if "launchConfigId" in event
        } == {"lc-a"}

    def test_pools_are_listed_page_by_page(self, world: World) -> None:
        expected = {f"journey/listed-{number}" for number in range(3)}
        for pool_id in expected:
            world.manager.createWorkerPool(pool_id, a_pool())
        listed: list[str] = []
        world.manager.listWorkerPools(
            query={"limit": "2"},
            paginationHandler=lambda page: listed.extend(
                one["workerPoolId"] for one in page["workerPools"]
            ),
        )
        assert expected <= set(listed)
        assert len(listed) == len(set(listed))

    def test_launch_configs_are_listed_archived_ones_on_request(self, world: World) -> None:
        pool_id = "journey/launch-configs"
        old, new = launch_config("lc-old", "us-east-1"), launch_config("lc-new", "us-west-2")
        world.manager.createWorkerPool(pool_id, a_pool([old]))
        world.manager.updateWorkerPool(pool_id, a_pool([new]))

        def listed(**query: str) -> dict[str, bool]:
            page = world.manager.listWorkerPoolLaunchConfigs(pool_id, query=query)
            return {
                one["launchConfigId"]: one["isArchived"] for one in page["workerPoolLaunchConfigs"]
            }

        assert listed() == {"lc-new": False}
        assert listed(includeArchived="true") == {"lc-new": False, "lc-old": True}

    def test_a_pool_that_is_not_there_is_a_404(self, world: World) -> None:
        error = refusal(lambda: world.manager.workerPool("journey/nowhere"))
        assert error.status_code == 404
        assert error.body["code"] == "ResourceNotFound"

    def test_a_pool_that_exists_otherwise_is_a_409(self, world: World) -> None:
        world.manager.createWorkerPool("journey/twice", a_pool())
        world.manager.createWorkerPool("journey/twice", a_pool())
        other = a_pool(maximum=9)
        error = refusal(lambda: world.manager.createWorkerPool("journey/twice", other))
        assert error.status_code == 409


class TestCloudWorkers:
    def test_they_are_listed_by_pool_and_by_group(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        pool_id, group, _ = key_of(machine)
        assert machine["launchConfigId"] == "lc-deaf"
        assert machine["workerId"] in [one["workerId"] for one in world.workers(pool_id)]
        in_group = world.manager.listWorkersForWorkerGroup(pool_id, group)["workers"]
        assert machine["workerId"] in [one["workerId"] for one in in_group]
        nobody = world.manager.listWorkersForWorkerGroup(pool_id, FULL_REGION)
        assert nobody == {"workers": []}
        assert world.manager.worker(*key_of(machine))["state"] == "requested"

    def test_a_machine_registers_renews_and_asks_with_its_own_credentials(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        registered = world.register(machine)
        assert registered["workerConfig"] == {"capacity": 1}
        assert world.manager.worker(*key_of(machine))["state"] == "running"

        worker = world.client(taskcluster.WorkerManager, credentials=registered["credentials"])
        answer = worker.shouldWorkerTerminate(*key_of(machine))
        assert answer["terminate"] is False
        assert answer["reason"]

        pool_id, group, worker_id = key_of(machine)
        renewal = {
            "workerPoolId": pool_id,
            "workerGroup": group,
            "workerId": worker_id,
            "secret": registered["secret"],
        }
        renewed = worker.reregisterWorker(renewal)
        assert renewed["expires"] >= registered["expires"]
        assert renewed["secret"] != registered["secret"]
        again = world.client(taskcluster.WorkerManager, credentials=renewed["credentials"])
        assert again.reregisterWorker(renewal)["secret"] == renewed["secret"]

    def test_a_machine_may_not_speak_for_another(
        self, world: World, machine: dict[str, Any], machines: list[dict[str, Any]]
    ) -> None:
        registered = world.register(machine)
        worker = world.client(taskcluster.WorkerManager, credentials=registered["credentials"])
        other = machines[0]
        for call in (worker.shouldWorkerTerminate, worker.removeWorker):
            error = refusal(lambda call=call: call(*key_of(other)))
            assert error.status_code == 403
            assert error.body["code"] == "InsufficientScopes"

    def test_a_worker_reports_an_error_which_is_listed(
        self, world: World, machine: dict[str, Any]
    ) -> None:
        registered = world.register(machine)
        worker = world.client(taskcluster.WorkerManager, credentials=registered["credentials"])
        pool_id, group, worker_id = key_of(machine)
        reported = worker.reportWorkerError(
            pool_id,
            {
                "workerGroup": group,
                "workerId": worker_id,
                "kind": "worker-error",
                "title": "No disk",
                "description": "The disk was not there.",
                "extra": {"device": "nvme1"},
            },
        )
        assert reported["launchConfigId"] == "lc-deaf"
        query = {"errorId": reported["errorId"]}
        listed = world.manager.listWorkerPoolErrors(pool_id, query=query)["workerPoolErrors"]
        assert listed == [reported]
        told = until(lambda: world.events.of(pool_id, "worker-pool-error"))
        assert reported["errorId"] in [event["errorId"] for event in told]


class TestStaticWorkers:
    def test_one_is_created_registered_changed_removed_and_set_up_again(self, world: World) -> None:
        pool_id = "journey/static"
        world.manager.createWorkerPool(pool_id, a_static_pool())
        key = (pool_id, "rack-1", "host-1")
        body = {
            "expires": in_an_hour(),
            "capacity": 1,
            "providerInfo": {"staticSecret": STATIC_SECRET},
        }
        assert world.manager.createWorker(*key, body)["state"] == "created"
        assert world.manager.updateWorker(*key, {**body, "capacity": 2})["capacity"] == 2

        def register(secret: str) -> Any:
            return world.anonymous(taskcluster.WorkerManager).registerWorker(
                {
                    "workerPoolId": pool_id,
                    "providerId": "static",
                    "workerGroup": "rack-1",
                    "workerId": "host-1",
                    "workerIdentityProof": {"staticSecret": secret},
                }
            )

        registered = register(STATIC_SECRET)
        worker = world.client(taskcluster.WorkerManager, credentials=registered["credentials"])
        assert worker.shouldWorkerTerminate(*key)["terminate"] is False
        renewed = worker.reregisterWorker(
            {
                "workerPoolId": pool_id,
                "workerGroup": "rack-1",
                "workerId": "host-1",
                "secret": registered["secret"],
            }
        )
        assert renewed["credentials"]["clientId"] == registered["credentials"]["clientId"]

        second, third = STATIC_SECRET[::-1], STATIC_SECRET.upper()
        rotated = world.manager.updateWorker(*key, {"providerInfo": {"staticSecret": second}})
        assert (rotated["state"], "previousSecretValidUntil" in rotated) == ("running", True)
        for secret in (STATIC_SECRET, second):
            register(secret)
        world.manager.updateWorker(*key, {"previousSecretValidSeconds": 0})
        assert refusal(lambda: register(STATIC_SECRET)).status_code == 400

        world.manager.removeWorker(*key)
        assert world.manager.worker(*key)["state"] == "stopped"
        assert refusal(lambda: register(second)).status_code == 400

        anew = {**body, "providerInfo": {"staticSecret": third}}
        assert world.manager.createWorker(*key, anew)["state"] == "created"
        assert refusal(lambda: register(second)).status_code == 400
        register(third)
        assert world.manager.worker(*key)["state"] == "running"

    def test_its_configuration_is_the_pools_present_one(self, world: World) -> None:
        """B28."""
        pool_id = "journey/static-config"
        world.manager.createWorkerPool(pool_id, a_static_pool())
        secret = {"staticSecret": STATIC_SECRET}
        body = {"expires": in_an_hour(), "providerInfo": secret}
        world.manager.createWorker(pool_id, "rack-1", "host-1", body)
        changed = a_static_pool(workerConfig={"capacity": 7})
        world.manager.updateWorkerPool(pool_id, changed)
        registered = world.manager.registerWorker(
            {
                "workerPoolId": pool_id,
                "providerId": "static",
                "workerGroup": "rack-1",
                "workerId": "host-1",
                "workerIdentityProof": secret,
            }
        )
        assert registered["workerConfig"] == {"capacity": 7}


class TestCredentials:
    def test_temporary_ones_carry_their_scopes_and_no_others(self, world: World) -> None:
        given = client_options(world.stage.root_url)["credentials"]
        temporary = taskcluster.createTemporaryCredentials(
            given["clientId"],
            given["accessToken"],
            *a_span(),
            ["worker-manager:list-providers"],
        )
        limited = world.client(taskcluster.WorkerManager, credentials=temporary)
        assert limited.listProviders()["providers"]
        assert refusal(limited.listWorkerPools).status_code == 403

    def test_named_temporary_ones_are_somebody_of_their_own(self, world: World) -> None:
        given = client_options(world.stage.root_url)["credentials"]
        named = taskcluster.createTemporaryCredentials(
            given["clientId"],
            given["accessToken"],
            *a_span(),
            ["queue:get-task:*"],
            name="local/dev/named",
        )
        error = refusal(world.client(taskcluster.WorkerManager, credentials=named).listWorkerPools)
        assert error.status_code == 403
        assert "local/dev/named" in error.body["message"]

    def test_authorized_scopes_narrow_what_a_client_may(self, world: World) -> None:
        narrow = world.client(
            taskcluster.WorkerManager, authorizedScopes=["worker-manager:list-providers"]
        )
        assert narrow.listProviders()["providers"]
        assert refusal(narrow.listWorkerPools).status_code == 403

    def test_a_wrong_token_is_a_401(self, world: World) -> None:
        wrong = {"clientId": "local/dev", "accessToken": "wrong"}
        stranger = world.client(taskcluster.WorkerManager, credentials=wrong)
        with pytest.raises(taskcluster.exceptions.TaskclusterAuthFailure) as caught:
            stranger.listWorkerPools()
        assert caught.value.status_code == 401

    def test_a_signed_url_opens_what_it_names(self, world: World) -> None:
        world.manager.createWorkerPool("journey/signed", a_pool())
        url = world.manager.buildSignedUrl("workerPool", "journey/signed")
        opened = world.http.get(url, timeout=60)
        assert opened.status_code == 200
        assert opened.json()["workerPoolId"] == "journey/signed"
        elsewhere = url.replace("signed?", "sighed?")
        assert elsewhere != url
        assert world.http.get(elsewhere, timeout=60).status_code == 401

    def test_a_signed_url_may_have_a_query(self, world: World) -> None:
        url = world.manager.buildSignedUrl("listWorkerPools", query={"limit": "1"})
        assert len(world.http.get(url, timeout=60).json()["workerPools"]) <= 1
        url = world.manager.buildSignedUrl("listWorkerPools", expiration=-60)
        assert world.http.get(url, timeout=60).status_code == 401


def test_the_asynchronous_client_is_served_alike(world: World) -> None:
    async def talk() -> list[Any]:
        async with taskcluster.aio.createSession() as session:
            options = client_options(world.stage.root_url)
            manager = taskcluster.aio.WorkerManager(options, session=session)
            queue = taskcluster.aio.Queue(options, session=session)
            await manager.createWorkerPool("journey/aio", a_pool())
            return list(
                await asyncio.gather(
                    manager.workerPool("journey/aio"),
                    manager.listWorkerPools(query={"limit": "1000"}),
                    manager.listProviders(),
                    queue.taskQueueCounts("journey/aio"),
                    queue.ping(),
                )
            )

    pool, listed, _, counts, ping = asyncio.run(talk())
    assert pool["workerPoolId"] == "journey/aio"
    assert "journey/aio" in [one["workerPoolId"] for one in listed["workerPools"]]
    assert (counts["pendingTasks"], counts["claimedTasks"]) == (0, 0)
    assert ping["alive"] is True
