"""The command, against the registry's real handlers over HTTP."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tests.api.registry_world import RegistryApi
from tests.api.world import TOKEN
from tests.http_server import serving
from tests.mix.racks import BUSY, IDLE, put_racks
from worker_manager.wiring.base import now
from worker_manager_cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

    from worker_manager.store.tables import Tables


@pytest.fixture
def root_url(tables: Tables) -> Iterator[str]:
    def handle(url: str) -> Any:
        api = RegistryApi(tables, root_url=url)
        api.clock.now = now()
        put_racks(api)
        return api.app.handle

    with serving(handle) as url:
        yield url


def run(root_url: str, *arguments: str, client: str = "test/root") -> Result:
    environment = {
        "TASKCLUSTER_ROOT_URL": root_url,
        "TASKCLUSTER_CLIENT_ID": client,
        "TASKCLUSTER_ACCESS_TOKEN": TOKEN,
        "COLUMNS": "160",
    }
    return CliRunner().invoke(main, ["mix", *arguments], env=environment)


def test_the_mix_is_told_as_tables_sheets_and_json(root_url: str) -> None:
    told = run(root_url)
    assert told.exit_code == 0, told.output
    for word in (BUSY, IDLE, "+1", "-1", "Machines to move, by hand", "rack-1/m13"):
        assert word in told.stdout

    lines = list(csv.DictReader(io.StringIO(run(root_url, "--csv").stdout)))
    assert [(line["taskQueueId"], line["proposed"]) for line in lines] == [
        (BUSY, "9"),
        (IDLE, "13"),
    ]
    moves = list(csv.DictReader(io.StringIO(run(root_url, "--moves").stdout)))
    assert [(move["workerId"], move["toTaskQueueId"]) for move in moves] == [("m13", BUSY)]
    found = json.loads(run(root_url, "--json", "--weeks", "2").stdout)
    assert (found["weeks"], len(found["moves"])) == (2, 1)

    refused = run(root_url, client="test/poor")
    assert refused.exit_code == 1
    assert "worker-registry:hardware-read" in refused.output
    assert "Traceback" not in refused.output


def test_where_there_is_no_deployment_it_says_so() -> None:
    assert "there is no worker-registry at http://127.0.0.1:9" in run("http://127.0.0.1:9").output
    assert "TASKCLUSTER_ROOT_URL" in run("").output
