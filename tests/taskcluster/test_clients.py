from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from worker_manager.core.scopes import AllOf, satisfies
from worker_manager.taskcluster.clients import Client, Clients
from worker_manager.taskcluster.credentials import (
    ISSUER_SCOPES,
    QUEUE_SCOPES,
    TASK_ISSUER_SCOPES,
    Issuer,
)

TOKEN = "local-development-only-no-secret"
OTHER_TOKEN = "x" * 44


def a_book(**overrides: Any) -> str:
    fields = {
        "clients": [
            {"clientId": "local/dev", "accessToken": TOKEN, "scopes": ["*"]},
            {
                "clientId": "other",
                "accessToken": OTHER_TOKEN,
                "scopes": [],
                "expires": "2030-01-01T00:00:00Z",
                "disabled": True,
            },
        ],
        "roles": [{"roleId": "anonymous", "scopes": ["ping"]}],
        "issuer": {"clientId": "service/worker-manager", "accessToken": OTHER_TOKEN},
    }
    return json.dumps(fields | overrides)


def a_client_entry(**overrides: Any) -> dict[str, Any]:
    return {"clientId": "a", "accessToken": TOKEN, "scopes": ["x"]} | overrides


def test_clients_roles_and_issuer_are_read() -> None:
    clients = Clients.from_json(a_book())
    assert clients.by_id["local/dev"] == Client("local/dev", TOKEN, ("*",))
    assert clients.by_id["other"] == Client(
        "other", OTHER_TOKEN, (), datetime(2030, 1, 1, tzinfo=UTC), disabled=True
    )
    assert clients.roles.expand(["assume:anonymous"]) == ("assume:anonymous", "ping")
    assert clients.issuer == Issuer("service/worker-manager", OTHER_TOKEN)


def test_an_issuer_that_is_no_client_becomes_one_that_can_do_nothing_else() -> None:
    issuing = Clients.from_json(a_book()).by_id["service/worker-manager"]
    assert issuing.scopes == (*ISSUER_SCOPES, *QUEUE_SCOPES, *TASK_ISSUER_SCOPES)
    assert not satisfies(issuing.scopes, "worker-manager:manage-worker-pool:a/b")


def test_an_issuer_may_be_one_of_the_clients() -> None:
    issuer = {"clientId": "local/dev", "accessToken": TOKEN}
    clients = Clients.from_json(a_book(issuer=issuer))
    assert satisfies(clients.by_id["local/dev"].scopes, AllOf(ISSUER_SCOPES))
    assert len(clients.by_id) == 2


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"issuer": {"clientId": "local/dev", "accessToken": OTHER_TOKEN}}, "another token"),
        ({"issuer": {"clientId": "other", "accessToken": OTHER_TOKEN}}, "lacks auth:create"),
        ({"issuer": None}, "issuer"),
        ({"issuer": {"clientId": "x"}}, "issuer"),
        ({"clients": [a_client_entry(), a_client_entry()]}, "given twice"),
        ({"clients": [a_client_entry(clientId="a b")]}, "clientId"),
        ({"clients": [a_client_entry(clientId="a\n")]}, "clientId"),
        ({"clients": [a_client_entry(clientId="")]}, "clientId"),
        ({"clients": [a_client_entry(accessToken="short")]}, "accessToken"),
        ({"clients": [a_client_entry(accessToken="x" * 67)]}, "accessToken"),
        ({"clients": [a_client_entry(accessToken="x" * 30 + "!")]}, "accessToken"),
        ({"clients": [a_client_entry(scopes=["x**"])]}, "cannot be granted"),
        ({"clients": [a_client_entry(scopes=["\u00fc"])]}, "cannot be granted"),
        ({"clients": [a_client_entry(scopes="x")]}, "scopes"),
        ({"clients": [a_client_entry(expires="2030-01-01T00:00:00")]}, "expires"),
        ({"clients": [a_client_entry(enabled=True)]}, "enabled"),
        ({"clients": {}}, "clients"),
        ({"roles": [{"roleId": "a", "scopes": ["x"]}] * 2}, "twice"),
        ({"roles": [{"roleId": "a*", "scopes": ["assume:a<..>x"]}]}, "leads back"),
        ({"roles": [{"roleId": "a"}]}, "scopes"),
        ({"more": 1}, "more"),
    ],
    ids=str,
)
def test_a_mistake_ends_the_start_and_is_named(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Clients.from_json(a_book(**overrides))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}"])
def test_what_is_not_such_a_book_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Clients.from_json(text)


def test_the_message_of_a_mistake_never_shows_a_token() -> None:
    wrong = a_book(clients=[a_client_entry(accessToken="very-secret-but-has-a-space ")])
    for text in (wrong, wrong[:-5], a_book(clients=a_client_entry())):
        with pytest.raises(ValueError, match="validation error") as caught:
            Clients.from_json(text)
        assert "secret" not in str(caught.value)
        assert OTHER_TOKEN not in str(caught.value)


def test_the_issuer_does_not_show_its_token_when_printed() -> None:
    assert OTHER_TOKEN not in repr(Clients.from_json(a_book()))
