"""From a path to its route, with the pool id's slash as it is or escaped."""

from __future__ import annotations

import pytest

from worker_manager.api import routes
from worker_manager.api.routing import Router

ROUTER = Router((*routes.POOLS, *routes.WORKERS))
BASE = "/api/worker-manager/v1"


@pytest.mark.parametrize("pool", ["proj-x%2Fpool-1", "proj-x%2fpool-1", "proj-x/pool-1"])
@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("PUT", "worker-pool/{pool}", "createWorkerPool"),
        ("POST", "worker-pool/{pool}", "updateWorkerPool"),
        ("DELETE", "worker-pool/{pool}", "deleteWorkerPool"),
        ("GET", "worker-pool/{pool}", "workerPool"),
        ("GET", "worker-pool/{pool}/launch-configs", "listWorkerPoolLaunchConfigs"),
        ("POST", "worker-pool-errors/{pool}", "reportWorkerError"),
        ("GET", "worker-pool-errors/{pool}", "listWorkerPoolErrors"),
        ("GET", "workers/{pool}", "listWorkersForWorkerPool"),
        ("GET", "workers/{pool}/g", "listWorkersForWorkerGroup"),
        ("GET", "workers/{pool}/g/w", "worker"),
        ("PUT", "workers/{pool}/g/w", "createWorker"),
        ("POST", "workers/{pool}/g/w", "updateWorker"),
        ("DELETE", "workers/{pool}/g/w", "removeWorker"),
        ("GET", "workers/{pool}/g/w/should-terminate", "shouldWorkerTerminate"),
        ("GET", "workers/{pool}:/g", "listWorkersForWorkerGroupWithColon"),
        ("GET", "workers/{pool}%3A/g/w", "workerWithColon"),
        ("PUT", "workers/{pool}:/g/w", "createWorkerWithColon"),
        ("POST", "workers/{pool}:/g/w", "updateWorkerWithColon"),
    ],
)
def test_a_pool_id_may_have_its_slash_escaped_or_not(
    pool: str, method: str, path: str, name: str
) -> None:
    match = ROUTER.find(method, f"{BASE}/{path.format(pool=pool)}")
    assert match is not None
    assert match.route.name == name
    assert match.params["workerPoolId"] == "proj-x/pool-1"
    assert match.params.get("workerGroup", "g") == "g"
    assert match.params.get("workerId", "w") == "w"
    assert match.misfit() is None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "worker-pool/no-slash"),
        ("GET", "worker-pool/a%2FUpper"),
        ("GET", "worker-pool/a%2Fb%2Fc"),
        ("GET", "worker-pool/a%20b%2Fc"),
        ("PUT", "workers/no-slash/g/w"),
        ("GET", "workers/a%2Fb/g.g"),
        ("GET", f"workers/a%2Fb/{'g' * 39}"),
        ("GET", "worker-pool/a%2Fb%0A"),
    ],
)
def test_a_malformed_parameter_is_found_and_named(method: str, path: str) -> None:
    match = ROUTER.find(method, f"{BASE}/{path}")
    assert match is not None
    assert "does not match" in (match.misfit() or "")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", f"{BASE}/ping"),
        ("GET", f"{BASE}/worker-pool"),
        ("GET", f"{BASE}/ping/"),
        ("GET", "/api/worker-manager/v2/ping"),
        ("GET", "/"),
    ],
)
def test_an_unknown_path_has_no_route(method: str, path: str) -> None:
    assert ROUTER.find(method, path) is None


def test_removing_has_no_alias_with_a_colon() -> None:
    match = ROUTER.find("DELETE", f"{BASE}/workers/a%2Fb:/g/w")
    assert match is not None
    assert match.misfit() is not None


def test_every_route_has_a_name_of_its_own() -> None:
    names = [route.name for route in (*routes.POOLS, *routes.WORKERS)]
    assert len(names) == len(set(names))


def test_scopes_that_need_the_body_are_told_apart() -> None:
    deferred = {r.name for r in (*routes.POOLS, *routes.WORKERS) if r.needs_body_for_scopes}
    assert deferred == {
        "createWorkerPool",
        "updateWorkerPool",
        "reportWorkerError",
        "reregisterWorker",
        "workerPoolErrorStats",
    }
