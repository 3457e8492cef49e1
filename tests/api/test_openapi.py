"""The OpenAPI documents: complete, valid, and true to the routes."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import pytest

from tests.api.world import ROOT_URL, Api
from worker_manager.api.documents.openapi import openapi
from worker_manager.api.documents.queue import SERVICE as QUEUE
from worker_manager.api.documents.worker_manager import SERVICE
from worker_manager.api.refusals import STATUS

SERVICES = pytest.mark.parametrize("service", [SERVICE, QUEUE], ids=lambda service: service.name)


def operations(service: Any) -> dict[str, dict[str, Any]]:
    paths = openapi(service, ROOT_URL)["paths"]
    return {
        operation["operationId"]: operation
        for methods in paths.values()
        for operation in methods.values()
    }


def references(node: Any) -> set[str]:
    """Everything that a document refers to."""
    if isinstance(node, list):
        return {found for item in node for found in references(item)}
    if not isinstance(node, dict):
        return set()
    inner = {found for item in node.values() for found in references(item)}
    return inner | ({node["$ref"]} if isinstance(node.get("$ref"), str) else set())


@SERVICES
def test_every_published_method_is_described(service: Any) -> None:
    assert operations(service).keys() == {route.name for route in service.routes}


@SERVICES
def test_what_is_referred_to_is_there(service: Any) -> None:
    document = openapi(service, ROOT_URL)
    for reference in references(document):
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


@SERVICES
def test_every_schema_is_one(service: Any) -> None:
    for schema in openapi(service, ROOT_URL)["components"]["schemas"].values():
        jsonschema_rs.meta.validate(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        )


@SERVICES
def test_parameters_are_those_of_the_path_and_of_the_route(service: Any) -> None:
    document = openapi(service, ROOT_URL)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
            assert all(one["description"] for one in operation["parameters"])


def test_a_document_says_where_it_is_served(api: Api) -> None:
    document = api.ok("GET", "openapi.json", client=None)
    assert document["openapi"] == "3.1.0"
    assert document["servers"] == [{"url": f"{ROOT_URL}/api/worker-manager/v1"}]


def test_scopes_stability_and_refusals_are_told() -> None:
    create, ping = operations(SERVICE)["createWorkerPool"], operations(SERVICE)["ping"]
    assert create["x-scopes"]["AllOf"][1] == "worker-manager:provider:<providerId>"
    assert create["security"] == [{"hawk": []}]
    assert set(create["responses"]) == {
        *("200", "400", "401", "403", "404", "409", "413", "500", "503")
    }
    assert create["requestBody"]["required"] is True
    assert ping["security"] == []
    assert set(ping["responses"]) == {"200", "400", "500", "503"}
    assert operations(SERVICE)["getWorker"]["x-stability"] == "experimental"


def test_errors_are_described_by_status_with_their_codes() -> None:
    responses = openapi(SERVICE, ROOT_URL)["components"]["responses"]
    told = {
        code
        for response in responses.values()
        for code in response["content"]["application/json"]["schema"]["allOf"][1]["properties"][
            "code"
        ]["enum"]
    }
    assert told == STATUS.keys()


def test_what_an_answer_leaves_out_is_never_null_and_a_request_may_say_so() -> None:
    schemas = openapi(SERVICE, ROOT_URL)["components"]["schemas"]
    assert schemas["WorkerList"]["properties"]["continuationToken"] == {"type": "string"}
    assert {"type": "null"} in schemas["UpdateWorkerRequest"]["properties"]["capacity"]["anyOf"]
