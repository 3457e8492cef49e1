"""References and JSON schemas: against the stock ones, their own formats, and stock clients."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
import requests
import taskcluster  # type: ignore[import-untyped]
from taskcluster.client import createApiClient  # type: ignore[import-untyped]

from tests.api import stock
from tests.api.world import ROOT_URL, TOKEN, Api, a_definition
from tests.events import a_proxy_event
from tests.http_server import serving
from worker_manager.api import queue, registry
from worker_manager.api.app import App
from worker_manager.api.documents import schemas, words
from worker_manager.api.documents.queue import SERVICE as QUEUE
from worker_manager.api.documents.references import api_reference, exchanges_reference
from worker_manager.api.documents.worker_manager import SERVICE
from worker_manager.api.event_schemas import EVENTS, MESSAGES
from worker_manager.core import events, pulse
from worker_manager.wiring.base import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.store.tables import Tables

BASE = "/references/worker-manager/v1"
SERVICES = pytest.mark.parametrize("service", [SERVICE, QUEUE], ids=lambda service: service.name)
ENTRIES = {entry["name"]: entry for entry in api_reference(SERVICE)["entries"]}
EXCHANGES = {entry["exchange"]: entry for entry in exchanges_reference(SERVICE)["entries"]}
ALL_EVENTS = {
    value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)
}


def known_schemas() -> dict[str, Any]:
    """Every JSON schema that is served, by its whole address, readable by any tool."""
    found = [
        *schemas.documents(SERVICE).values(),
        *schemas.documents(QUEUE).values(),
        *schemas.formats().values(),
    ]
    return {
        ROOT_URL + document["$id"].rstrip("#"): {
            **document,
            "$id": ROOT_URL + document["$id"].rstrip("#"),
            "$schema": "http://json-schema.org/draft-06/schema#",
        }
        for document in found
    }


KNOWN = known_schemas()


def validator(path: str) -> Any:
    """Of the schema at a path, which may refer to any other that is served."""
    return jsonschema_rs.Draft6Validator(
        KNOWN[ROOT_URL + path.rstrip("#")], retriever=lambda url: KNOWN[url.rstrip("#")]
    )


def keys(node: Any) -> set[str]:
    """Every key anywhere in a document."""
    if isinstance(node, list):
        return {key for item in node for key in keys(item)}
    if not isinstance(node, dict):
        return set()
    return node.keys() | {key for item in node.values() for key in keys(item)}


class TestAgainstTheStockReference:
    def test_every_published_method_is_there(self) -> None:
        assert len(stock.METHODS) == 27
        assert sorted(stock.METHODS.keys() - ENTRIES.keys()) == []

    @pytest.mark.parametrize("name", sorted(stock.METHODS))
    def test_a_method_is_the_same(self, name: str) -> None:
        theirs, ours = stock.METHODS[name], ENTRIES[name]
        expected = {
            key: stock.DIFFERENCES.get((name, key), theirs.get(key))
            for key in ("name", "method", "route", "args", "stability", "input", "output")
        }
        assert {key: ours.get(key) for key in expected} == expected
        assert set(ours["query"]) == set(theirs.get("query", ()))
        assert ours.get("scopes") == stock.SCOPES[name]

    def test_what_was_never_published_is_not_published(self) -> None:
        assert [name for name in ENTRIES if name.endswith("WithColon")] == []
        assert not {"openapi", "apiReference", "get"} & ENTRIES.keys()

    def test_what_ours_has_beyond_it_is_not_called_stable(self) -> None:
        beyond = ENTRIES.keys() - stock.METHODS.keys()
        assert {name for name in beyond if ENTRIES[name]["stability"] == "stable"} == set()

    @pytest.mark.parametrize("exchange", stock.EXCHANGES)
    def test_an_exchange_is_the_same(self, exchange: str) -> None:
        name = words.camel(exchange)
        client = createApiClient("Ours", {"reference": dict(exchanges_reference(SERVICE))})
        options = {"rootUrl": ROOT_URL}
        for pattern in ({}, {"provisionerId": "proj-x", "workerId": "i-1"}):
            theirs = getattr(taskcluster.WorkerManagerEvents(options), name)(pattern)
            assert getattr(client(options), name)(pattern) == theirs


class TestTheirForm:
    @SERVICES
    def test_a_reference_is_as_its_schema_says(self, service: Any) -> None:
        reference = api_reference(service)
        validator(reference["$schema"]).validate(reference)
        exchanges = exchanges_reference(service)
        validator(exchanges["$schema"]).validate(exchanges)

    @SERVICES
    def test_every_schema_that_a_reference_names_is_served(self, service: Any) -> None:
        named = {
            f"{ROOT_URL}/schemas/{service.name}/{entry[key]}".rstrip("#")
            for entry in [
                *api_reference(service)["entries"],
                *exchanges_reference(service)["entries"],
            ]
            for key in ("input", "output", "schema")
            if key in entry
        }
        assert named - KNOWN.keys() == set()

    @pytest.mark.parametrize("url", sorted(KNOWN))
    def test_a_schema_is_one_and_refers_to_nothing_that_is_missing(self, url: str) -> None:
        jsonschema_rs.meta.validate(KNOWN[url])
        validator(url.removeprefix(ROOT_URL)).is_valid({})
        assert not {"ge", "le", "gt", "lt"} & keys(KNOWN[url])

    @SERVICES
    def test_methods_are_told_apart_and_described(self, service: Any) -> None:
        entries = api_reference(service)["entries"]
        assert len({entry["name"] for entry in entries}) == len(entries)
        assert [entry["name"] for entry in entries if not entry["description"]] == []
        assert [name for name in entries if "(B" in name["description"]] == []

    @SERVICES
    def test_every_parameter_has_a_meaning(self, service: Any) -> None:
        """Say it in ``api.documents.words``."""
        for route in service.routes:
            assert {*route.url_parameters} <= words.URL_PARAMETERS.keys(), route.name
            assert {*route.query} <= words.QUERY_PARAMETERS.keys(), route.name

    def test_a_title_is_the_name_in_words(self) -> None:
        assert ENTRIES["listWorkerPoolLaunchConfigs"]["title"] == "List worker pool launch configs"
        assert ENTRIES["listWorkerPoolLaunchConfigs"]["category"] == "Worker Pools"
        assert ENTRIES["worker"]["category"] == "Workers"


class TestEvents:
    def test_every_event_is_described_on_the_bus_and_on_its_exchange(self) -> None:
        assert EVENTS.keys() == ALL_EVENTS
        assert EXCHANGES.keys() == ALL_EVENTS
        assert {f"event-{name}.json" for name in ALL_EVENTS} <= schemas.documents(SERVICE).keys()

    @pytest.mark.parametrize("name", sorted(MESSAGES))
    def test_a_message_has_the_fields_that_are_sent(self, name: str) -> None:
        sent = pulse.SCHEMAS[name]
        fields = {
            field.alias: field.is_required() for field in MESSAGES[name].model_fields.values()
        }
        assert sent.required <= fields.keys()
        assert {alias for alias, required in fields.items() if required} >= sent.required
        assert sent.required | sent.optional - {"capacity"} <= fields.keys()

    def test_a_message_of_the_reference_is_closed_and_an_event_says_more(self) -> None:
        message = {
            "workerPoolId": "proj-x/pool-1",
            "providerId": "aws",
            "workerGroup": "us-east-1",
            "workerId": "i-1",
            "capacity": 1,
            "timestamp": "2026-01-02T03:04:05.000Z",
        }
        closed = validator("/schemas/worker-manager/v1/pulse-worker-message.json")
        event = validator("/schemas/worker-manager/v1/event-worker-running.json")
        told = {**message, "reason": "registered", "eventId": "0" * 32}
        assert closed.is_valid(message)
        assert not closed.is_valid(told)
        assert event.is_valid(told)
        assert not event.is_valid(message)
        assert not event.is_valid({**told, "launchConfigId": None})


class TestServing:
    @pytest.mark.parametrize(
        "path",
        [
            "/references/manifest.json",
            f"{BASE}/api.json",
            f"{BASE}/exchanges.json",
            "/schemas/common/metaschema.json",
            "/schemas/common/api-reference-v0.json",
            "/schemas/worker-manager/v1/worker-full.json",
            "/schemas/worker-manager/v1/config-aws.json",
            "/api/worker-manager/v1/openapi.json",
        ],
    )
    def test_a_document_is_anybodys_to_read_and_keep(self, api: Api, path: str) -> None:
        response = api("GET", path, client=None)
        assert response.status == 200
        assert response.headers["Cache-Control"] == "public, max-age=300"
        assert isinstance(response.body, dict)

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("/schemas/worker-manager/v1/nothing.json", 404),
            ("/schemas/common/nothing.json", 404),
            ("/schemas/worker-manager/v1/..%2Fx.json", 400),
            ("/references/nothing/v1/api.json", 404),
        ],
    )
    def test_what_is_not_there_is_refused_and_not_kept(
        self, api: Api, path: str, status: int
    ) -> None:
        response = api("GET", path, client=None)
        assert response.status == status
        assert "no-store" in response.headers["Cache-Control"]

    def test_the_manifest_leads_to_what_is_served(self, api: Api) -> None:
        manifest = api.ok("GET", "/references/manifest.json", client=None)
        validator("/schemas/common/manifest-v3.json").validate(manifest)
        deps: Any = api.deps
        others: dict[str, App[Any]] = {
            "queue": App(queue.ROUTES, deps),
            "worker-registry": App(registry.ROUTES, deps),
        }
        for url in manifest["references"]:
            path = url.removeprefix(ROOT_URL)
            app = others.get(path.split("/")[2], api.app)
            assert app.handle(a_proxy_event(path=path))["statusCode"] == 200, path

    def test_a_schema_has_the_address_that_it_says(self, api: Api) -> None:
        for document in schemas.documents(SERVICE).values():
            path = document["$id"].rstrip("#")
            assert api.ok("GET", path, client=None) == json.loads(json.dumps(document))


def test_what_we_answer_is_what_the_schemas_say(pool: Api) -> None:
    """The schemas are those of models that check answers too, but for what is null or not set."""
    answers: Mapping[str, Any] = {
        "worker-pool-full": pool.ok("GET", "worker-pool/proj-x%2Fpool-1"),
        "worker-pool-list": pool.ok("GET", "worker-pools"),
        "worker-list": pool.ok("GET", "workers/proj-x%2Fpool-1"),
        "provider-list": pool.ok("GET", "providers"),
        "worker-pool-stats": pool.ok("GET", "worker-pool/proj-x%2Fpool-1/stats"),
    }
    for name, answer in answers.items():
        validator(f"/schemas/worker-manager/v1/{name}.json").validate(answer)


def test_a_client_built_from_our_reference_reaches_every_method(tables: Tables) -> None:
    """Also those that the stock client does not know."""

    def handle(url: str) -> Any:
        return Api(tables, now, url).app.handle

    with serving(handle) as url:
        reference = requests.get(f"{url}{BASE}/api.json", timeout=60).json()
        made = createApiClient("Ours", {"reference": reference})
        credentials = {"clientId": "test/root", "accessToken": TOKEN}
        client = made({"rootUrl": url, "credentials": credentials, "maxRetries": 0})
        assert client.createWorkerPool("proj-x/pool-1", a_definition())["providerId"] == "aws"
        given = {
            "workerPoolId": "proj-x/pool-1",
            "workerGroup": "us-east-1",
            "workerId": "i-1",
            "launchConfigId": "lc-a",
            "provisionerId": "proj-x",
            "workerType": "pool-1",
            "decisionId": "none",
        }
        for entry in reference["entries"]:
            arguments: list[Any] = [given[name] for name in entry["args"]]
            if "input" in entry:
                arguments.append({})
            try:
                getattr(client, entry["name"])(*arguments)
            except taskcluster.exceptions.TaskclusterRestFailure as refused:
                # Reached, and refused by the method itself: a body that is no body, no such worker.
                assert refused.body["requestInfo"]["method"] == entry["name"]
                assert refused.status_code in (400, 404, 409), refused.body
