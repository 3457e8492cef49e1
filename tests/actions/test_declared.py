"""What may be declared, what a target has of it, and which one is meant by a name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.action_tables import HOST, an_action
from worker_manager.actions import declared
from worker_manager.actions.declared import find, offered, scopes_to_run, to_json
from worker_manager.actions.entities import Action, Context, Kind, Level, Target
from worker_manager.actions.hosts import LONGEST_URL, Hosts
from worker_manager.actions.placeholders import fault_of, fill_url
from worker_manager.core.errors import ConflictError, InputInvalidError, NotFoundError
from worker_manager.core.scopes import AllOf

HOSTS = Hosts.of(["allowed.example", "other.example:8443", "127.0.0.1:7000", "[::1]:7000"])
WORKER = Target.of_worker(HOST)
TYPE = Target("hw", "linux")
URL = (
    "https://allowed.example/api/<provisionerId>/<workerType>/<workerGroup>/<workerId>?w=<workerId>"
)


def an_http_action(name: str = "reimage", **overrides: Any) -> Action:
    values: dict[str, Any] = {
        "kind": Kind.HTTP,
        "url": URL,
        "method": "POST",
        "operation": None,
        "agent_id": None,
    }
    return an_action(name, **(values | overrides))


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x",
        "https://allowed.example.evil.example/x",
        "https://evil-allowed.example/x",
        "https://allowed.example@evil.example/x",
        "https://allowed.example:443@evil.example/x",
        "https://user:pass@allowed.example/x",
        "https://evil.example\\@allowed.example/x",
        "https://allowed.example\\.evil.example/x",
        "https:\\\\allowed.example/x",
        "https:/allowed.example/x",
        "https:///allowed.example/x",
        "//allowed.example/x",
        "https://allowed.example",
        "https://allowed.example?x=/",
        "https://allowed.example#@evil.example/",
        "https://allowed.example/x#there",
        "https://allowed.example:8443/x",
        "https://allowed.example:0443/x",
        "https://allowed.example:/x",
        "https://allowed.example:99999/x",
        "https://other.example/x",
        "https://allowed.example./x",
        "https://ALLOWED.example/x",
        "https://\u0430llowed.example/x",
        "https://allowed。example/x",
        "https://allowed%2eexample/x",
        "https://allowed.example/x y",
        "https://allowed.example/x\r\nHost: evil.example",
        "https://allowed.example/x\n",
        " https://allowed.example/x",
        "https://allowed.example/\u0661",
        "https://allowed.example/\x00",
        "https://allowed.example/x;y",
        "https://allowed.example/%zz",
        "https://allowed.example/%",
        "https://allowed.example/a/../b",
        "https://allowed.example/a/%2E%2e/b",
        "https://allowed.example/a/.",
        "http://allowed.example/x",
        "http://allowed.example:443/x",
        "http://127.0.0.1/x",
        "http://127.0.0.1:7001/x",
        "http://2130706433:7000/x",
        "ftp://allowed.example/x",
        "javascript:alert(1)//allowed.example/x",
        "https://<provisionerId>/x",
        "https://<provisionerId>.allowed.example/x",
        "https://allowed.example:<workerId>/x",
        "https://allowed.example/<taskId>",
        "https://allowed.example/<>",
        "https://allowed.example/<workerId",
        "https://allowed.example/workerId>",
        "https://allowed.example/<<workerId>>",
        "https://allowed.example/<worker-id>",
        "https://allowed.example/<WORKERID>",
        "https://allowed.example/%<workerId>",
        "https://allowed.example/" + "x" * LONGEST_URL,
        "https://allowed.example/" + "<workerId>" * 40,
    ],
)
def test_a_url_that_leads_elsewhere_or_might_is_refused(url: str) -> None:
    with pytest.raises(InputInvalidError) as caught:
        declared.check(an_http_action(url=url), Level.WORKER, HOSTS)
    assert caught.value.field == "url"


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "https://allowed.example/",
        "https://allowed.example:443/a%2Fb?x=1&y=%20",
        "https://other.example:8443/x",
        "http://127.0.0.1:7000/x",
        "http://[::1]:7000/x",
        "https://allowed.example/a..b/.well-known/x",
    ],
)
def test_a_url_of_an_allowed_host_is_taken(url: str) -> None:
    declared.check(an_http_action(url=url), Level.WORKER, HOSTS)


@pytest.mark.parametrize(
    "text", ["Allowed.example", "https://allowed.example", "allowed.example:", "*", "", "a:0",
             "a:70000", "a/b", "a b", "a,b", "user@a", "a:1:2", "-a"]
)  # fmt: skip
def test_a_setting_that_names_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither host nor host:port"):
        Hosts.of([text])


@pytest.mark.parametrize(
    ("context", "fits"),
    [
        (Context.PROVISIONER, ["<provisionerId>"]),
        (Context.WORKER_TYPE, ["<provisionerId>", "<workerType>"]),
        (
            Context.WORKER,
            ["<provisionerId>", "<workerType>", "<workerGroup>", "<workerId>"],
        ),
    ],
)
def test_an_action_has_the_placeholders_of_its_context_only(
    context: Context, fits: list[str]
) -> None:
    everything = ["<provisionerId>", "<workerType>", "<workerGroup>", "<workerId>"]
    assert [one for one in everything if fault_of(f"a/{one}/b", context) is None] == fits


_ANYTHING = st.text(min_size=1, max_size=20).filter(lambda text: text not in (".", ".."))


@given(st.builds(Target, _ANYTHING, _ANYTHING, _ANYTHING, _ANYTHING))
def test_whatever_ids_are_filled_in_the_url_stays_on_its_host_and_in_its_places(
    target: Target,
) -> None:
    filled = fill_url(URL, target)

    assert len(filled) > LONGEST_URL or HOSTS.fault_of(filled) is None
    assert urlsplit(filled).netloc == "allowed.example"
    assert [filled.count(mark) for mark in "/?=&#@<"] == [URL.count(mark) for mark in "/?=&#@"] + [
        0
    ]


@pytest.mark.parametrize(
    ("worker_id", "there"),
    [
        ("a/../../admin", "a%2F..%2F..%2Fadmin"),
        ("a?b=c&d#e", "a%3Fb%3Dc%26d%23e"),
        ("<workerGroup>", "%3CworkerGroup%3E"),
        ("a\r\nHost: b", "a%0D%0AHost%3A%20b"),
        ("%2e%2e", "%252e%252e"),
        ("ü@b", "%C3%BC%40b"),
    ],
)
def test_hostile_ids_are_encoded(worker_id: str, there: str) -> None:
    url = fill_url("https://h/<workerId>", Target("p", "t", "g", worker_id))
    assert url == f"https://h/{there}"


@pytest.mark.parametrize("worker_id", ["..", ".", "", None])
def test_an_id_that_is_a_path_or_missing_is_filled_in_nowhere(worker_id: str | None) -> None:
    with pytest.raises(ValueError, match=r"is a path|has nothing for"):
        fill_url("https://h/<workerId>/x", Target("p", "t", "g", worker_id))


@pytest.mark.parametrize(
    ("field", "action"),
    [
        ("context", an_action(context=Context.PROVISIONER)),
        ("context", an_action(context=Context.WORKER_TYPE)),
        ("url", an_action(url="https://allowed.example/")),
        ("url", an_http_action(url=None)),
        ("method", an_http_action(method=None)),
        ("agentId", an_http_action(agent_id="dc1")),
        ("agentId", an_action(agent_id=None)),
        ("params", an_http_action(params={"a": 1})),
        ("operation", an_http_action(operation="reboot")),
        ("operation", an_action(kind=Kind.BUILTIN, agent_id=None, operation="format")),
        ("requiredScopes", an_action(required_scopes=("roller:\u00fc",))),
        ("requiredScopes", an_action(required_scopes=("roller:<task>",))),
        ("requiredScopes", an_action(required_scopes=("a" * 300,) * 7)),
        ("requiredScopes", an_action(required_scopes=("<workerId>" * 60,))),
    ],
)
def test_what_an_action_of_its_kind_and_place_must_not_say_is_refused(
    field: str, action: Action
) -> None:
    with pytest.raises(InputInvalidError) as caught:
        declared.check(action, Level.WORKER, HOSTS)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "action"),
    [
        ("bulk", an_action(context=Context.WORKER_TYPE, is_bulk=True)),
        (
            "context",
            an_action(context=Context.WORKER_TYPE, kind=Kind.BUILTIN, agent_id=None),
        ),
        ("context", an_action(context=Context.PROVISIONER)),
    ],
)
def test_what_a_worker_type_must_not_say_of_itself_is_refused(field: str, action: Action) -> None:
    with pytest.raises(InputInvalidError) as caught:
        declared.check(action, Level.WORKER_TYPE, HOSTS)
    assert caught.value.field == field


def test_a_list_says_which_of_its_actions_is_wrong() -> None:
    for actions, where in (
        ([an_action(), an_http_action(url="https://evil.example/")], "actions[1].url"),
        ([an_action(), an_action()], "actions[1].name"),
    ):
        with pytest.raises(InputInvalidError, match=r"^actions\[1\]\.\w+: \S") as caught:
            declared.check_all(actions, Level.WORKER, HOSTS)
        assert caught.value.field == where


def test_an_action_is_the_same_when_read_back() -> None:
    for action in (
        an_http_action(required_scopes=("a:<workerId>",), cooldown=timedelta()),
        an_action(params={"rungs": [1, {"a": None}]}, is_confirmed=False, is_bulk=True),
    ):
        assert declared.from_json(to_json(action)) == action


def test_an_entry_of_six_fields_is_an_http_action() -> None:
    six = {"name": "a", "title": "A", "context": "worker", "url": URL, "method": "POST",
           "description": "Does a."}  # fmt: skip
    assert declared.from_json(six) == an_http_action("a", title="A", description="Does a.")


def _offered(target: Target, *, can_reboot: bool = False, **levels: Action) -> list[Any]:
    given = {Level(level.replace("_", "-")): (to_json(one),) for level, one in levels.items()}
    found = offered(target, given, can_reboot=can_reboot, hosts=HOSTS)
    return [(one.action.name, str(one.level), one.refusal is None) for one in found]


def test_a_worker_has_what_all_have_and_what_is_declared_above_it() -> None:
    builtins = [(name, "deployment", True) for name in ("kill", "quarantine", "release")]
    reboot = ("reboot", "deployment", True)
    wide = an_action("sweep", context=Context.PROVISIONER)

    assert _offered(WORKER) == builtins
    assert _offered(WORKER, can_reboot=True) == [*builtins, reboot]
    assert _offered(
        WORKER, worker=an_action("a"), provisioner=wide, worker_type=an_action("b")
    ) == [
        *builtins,
        ("sweep", "provisioner", False),
        ("b", "worker-type", True),
        ("a", "worker", True),
    ]
    assert _offered(TYPE, provisioner=wide, worker_type=an_action("b")) == [
        ("sweep", "provisioner", False),
        ("b", "worker-type", False),
    ]


def test_what_was_declared_while_its_host_was_allowed_is_refused_now() -> None:
    gone = an_http_action(url="https://gone.example/<workerId>")
    assert ("reimage", "worker", False) in _offered(WORKER, worker=gone)
    assert ("reimage", "worker", True) in _offered(WORKER, worker=an_http_action())


def test_a_declared_reboot_by_the_cloud_is_refused_where_no_cloud_does_it() -> None:
    ours = an_action("restart", kind=Kind.BUILTIN, agent_id=None, operation="reboot")
    assert ("restart", "worker", False) in _offered(WORKER, worker=ours)
    assert ("restart", "worker", True) in _offered(WORKER, can_reboot=True, worker=ours)


def test_a_name_that_several_have_needs_a_level_and_none_wins() -> None:
    found = offered(
        WORKER,
        {Level.PROVISIONER: (to_json(an_action()),), Level.WORKER: (to_json(an_action()),)},
        can_reboot=True,
        hosts=HOSTS,
    )
    with pytest.raises(ConflictError, match="give a level of deployment, provisioner, worker"):
        find(found, "reboot", context=Context.WORKER)
    for level in (Level.DEPLOYMENT, Level.PROVISIONER, Level.WORKER):
        assert find(found, "reboot", level, context=Context.WORKER).level is level


def test_one_that_may_not_be_called_leaves_its_name_to_no_other() -> None:
    gone = to_json(an_http_action("fix", url="https://gone.example/"))
    found = offered(
        WORKER,
        {Level.PROVISIONER: (to_json(an_action("fix")),), Level.WORKER: (gone,)},
        can_reboot=False,
        hosts=HOSTS,
    )
    with pytest.raises(ConflictError):
        find(found, "fix", context=Context.WORKER)
    with pytest.raises(InputInvalidError, match=r"gone\.example .* not among the hosts"):
        find(found, "fix", Level.WORKER, context=Context.WORKER)


@pytest.mark.parametrize(
    ("name", "level", "error"),
    [
        ("nothing", None, NotFoundError),
        ("kill", Level.WORKER, NotFoundError),
        ("sweep", None, InputInvalidError),
    ],
)
def test_what_is_not_there_or_for_something_else_is_not_found(
    name: str, level: Level | None, error: type[Exception]
) -> None:
    wide = to_json(an_action("sweep", context=Context.PROVISIONER))
    found = offered(WORKER, {Level.PROVISIONER: (wide,)}, can_reboot=False, hosts=HOSTS)
    with pytest.raises(error):
        find(found, name, level, context=Context.WORKER)


def test_an_action_needs_its_own_scope_and_all_that_it_requires() -> None:
    action = an_action(required_scopes=("roller:reboot:<workerGroup>/<workerId>", "roller:on"))
    assert scopes_to_run(action, WORKER) == AllOf(
        (
            "worker-registry:run-action:reboot:hw/linux/rack-1/host-1",
            "roller:reboot:rack-1/host-1",
            "roller:on",
        )
    )


def test_one_of_ours_by_another_name_needs_the_scope_of_what_it_does_too() -> None:
    ping = an_action("ping", kind=Kind.BUILTIN, agent_id=None, operation="kill")
    own, kill = (f"worker-registry:run-action:{name}:{WORKER}" for name in ("ping", "kill"))
    assert scopes_to_run(ping, WORKER) == AllOf((own, kill))
