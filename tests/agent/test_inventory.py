"""What the agent's files may say: everything that is wrong is told, with the host and the field."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from worker_manager.actions.course import LEASE
from worker_manager_agent.__main__ import UNUSABLE, main
from worker_manager_agent.config import LEASE_SECONDS, load_config
from worker_manager_agent.failures import ConfigError
from worker_manager_agent.inventory import DEFAULT_LADDER, Rung, load_inventory

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = 'worker_group = "r"\nworker_id = "m-7"\naddress = "10.0.0.7"\n'
IPMI = 'ipmi = {address = "b", user = "u", password = {file = "secret"}'
SSH = 'ssh = {user = "u", key = "secret", known_hosts = "hosts"'
PDU = 'pdu = {address = "p", outlet = "aa8"'
REDFISH = 'system = "/redfish/v1/Systems/1", user = "u", password = {env = "PASSWORD"}}'
V3 = 'v3 = {name = "u", auth_key = {env = "PASSWORD"}, priv_key = {env = "PASSWORD"}}'
VALUE = "hunter2-hunter2"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "secret").write_text(VALUE)
    (tmp_path / "open").touch(mode=0o640)
    (tmp_path / "open").chmod(0o640)
    (tmp_path / "open").write_text(VALUE)
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "empty").touch(mode=0o600)
    (tmp_path / "hosts").write_text("")

    def write(text: str, name: str = "inventory.toml") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def load(path: Path) -> Any:
    return load_inventory(path, {"PASSWORD": VALUE})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[host]]\n" + HOST + 'ladder = ["ssh", "kick"]', "host m-7: ladder.1: Input should be"),
        (
            "[[host]]\n" + HOST + 'ladder = ["ssh", "ssh"]',
            "host m-7: ladder: a rung is there twice",
        ),
        ("[[host]]\n" + HOST + "ladder = []", "host m-7: ladder: List should have at least 1"),
        ("[[host]]\n" + HOST + "colour = 1", "host m-7: colour: Extra inputs"),
        ("[[host]]\n" + HOST + "address2 = 1", "host m-7: address2"),
        ("[[host]]\n" + HOST.replace('"10.0.0.7"', "7"), "host m-7: address: Input should be"),
        ("[[host]]\n" + HOST.replace("m-7", "m/7"), "host m/7: worker_id: String should match"),
        ("[[host]]\n" + HOST + "look = {port = 99999}", "look.port: Input should be less"),
        (
            "[[host]]\n" + HOST + 'look = {port = "22"}',
            "look.port: Input should be a valid integer",
        ),
        ("[[host]]\n" + HOST + "look = {up_within_seconds = -1}", "look.up_within_seconds"),
        ("[[host]]\n" + HOST + "look = {up_within_seconds = nan}", "look.up_within_seconds"),
        ("[[host]]\n" + HOST + IPMI + ", port = true}", "host m-7: ipmi.port"),
        ("[[host]]\n" + HOST + IPMI.replace("secret", "open") + "}", "ipmi.password: "),
        ("[[host]]\n" + HOST + IPMI.replace("secret", "open") + "}", "can be used by others"),
        ("[[host]]\n" + HOST + IPMI.replace("secret", "none") + "}", "cannot be read"),
        ("[[host]]\n" + HOST + IPMI.replace("secret", "link") + "}", "is not a regular file"),
        ("[[host]]\n" + HOST + IPMI.replace("secret", "empty") + "}", "is empty"),
        (
            "[[host]]\n" + HOST + IPMI.replace('{file = "secret"}', f'"{VALUE}"') + "}",
            "not written",
        ),
        ("[[host]]\n" + HOST + IPMI.replace('{file = "secret"}', "{}") + "}", "either file or env"),
        (
            "[[host]]\n" + HOST + IPMI.replace('file = "secret"', 'env = "NO"') + "}",
            "NO is not set",
        ),
        ("[[host]]\n" + HOST + SSH.replace("secret", "open") + "}", "host m-7: ssh.key: "),
        ("[[host]]\n" + HOST + SSH.replace('"hosts"', '"none"') + "}", "ssh.known_hosts: "),
        ("[[host]]\n" + HOST + SSH + ', password = "x"}', "ssh.password: Extra inputs"),
        ("[[host]]\n" + HOST + PDU + "}", "pdu: say either v3 or v2c_community"),
        ("[[host]]\n" + HOST + PDU.replace("aa8", "8") + "}", "pdu.outlet: String should match"),
        (
            "[[host]]\n" + HOST + 'redfish = {url = "http://bmc", ' + REDFISH,
            "redfish.url: https is needed",
        ),
        (
            "[[host]]\n" + HOST + 'redfish = {url = "https://u:p@bmc", ' + REDFISH,
            "redfish.url: String should match",
        ),
        ("[[host]]\n" + HOST + 'ticket = {url = "http://x/y", body = {}}', "ticket.url: https is"),
        ("[[host]]\n" + HOST + "[[host]]\n" + HOST, "host m-7: worker_id: listed twice"),
        ('[[host]]\nname = "a"', "host a: worker_group: Field required"),
        ("[[host]]\n", "host 1: worker_group"),
        ("hosts = 1", "hosts: unknown"),
        ("host = 1", "[[host]] a list of tables"),
        ("host = [1]", "host 1: it: Input should be"),
        ("[[host]", "inventory.toml: "),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    write: Callable[..., Path], text: str, complaint: str
) -> None:
    with pytest.raises(ConfigError) as told:
        load(write(text))
    assert complaint in str(told.value)
    assert VALUE not in str(told.value)


def test_all_that_is_wrong_is_told_at_once(write: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError) as told:
        load(write("[[host]]\n" + HOST + 'look = {port = "x"}\ncolour = 1\n[[host]]\n'))
    assert len(str(told.value).splitlines()) == 5


def test_defaults_are_for_hosts_that_say_nothing_else(write: Callable[..., Path]) -> None:
    path = write(
        '[defaults]\nladder = ["ipmi-cycle", "ssh"]\nlook = {port = 2222, banner = ""}\n'
        f"{IPMI}}}\n"
        f"{PDU.replace('outlet', 'off_seconds = 5, outlet')}, {V3}}}\n"
        "[[host]]\n" + HOST + 'look = {banner = "SSH-"}\nipmi = {address = "own"}\n'
        "[[host]]\n" + HOST.replace("m-7", "m-8") + 'ladder = ["pdu"]\n'
    )
    first, second = load(path).values()
    assert first.ladder == [Rung.IPMI_CYCLE, Rung.SSH]
    assert (first.look.port, first.look.banner) == (2222, "SSH-")
    assert first.ipmi.address == "own"
    assert first.ipmi.password.get_secret_value() == VALUE
    assert VALUE not in repr(first)
    assert second.ladder == [Rung.PDU]
    assert second.ipmi is None
    assert second.pdu is None


def test_an_agent_lets_go_of_a_run_no_later_than_the_worker_manager_gives_it_to_others() -> None:
    assert LEASE.total_seconds() == LEASE_SECONDS


def test_the_ladder_goes_from_gentle_to_rough_and_ends_with_people() -> None:
    assert [str(rung) for rung in DEFAULT_LADDER] == [
        "ssh",
        "ipmi-reset",
        "redfish-reset",
        "ipmi-cycle",
        "redfish-cycle",
        "pdu",
        "ticket",
    ]


AGENT = (
    'root_url = "https://tc.example"\nagent_id = "dc1"\ninventory = "inventory.toml"\n'
    'task_queues = ["racks/*"]\n'
)
ME = {"TASKCLUSTER_CLIENT_ID": "me", "TASKCLUSTER_ACCESS_TOKEN": VALUE}


@pytest.mark.parametrize(
    ("text", "environment", "complaint"),
    [
        (AGENT.replace("https", "http"), ME, "root_url: https is needed"),
        (AGENT.replace(".example", ".example/x"), ME, "root_url: String should match"),
        (AGENT + "poll_seconds = 0", ME, "poll_seconds: Input should be greater"),
        (AGENT + 'most_at_once = "3"', ME, "most_at_once: Input should be a valid integer"),
        (AGENT + "lease_seconds = 90", ME, "lease_seconds: Input should be less"),
        (AGENT + "heartbeat_seconds = 31", ME, "over half of lease_seconds"),
        (AGENT + "speed = 1", ME, "speed: Extra inputs"),
        (AGENT.replace("dc1", "d c"), ME, "agent_id: String should match"),
        (AGENT.replace('"racks/*"', ""), ME, "task_queues: Tuple should have at least 1 item"),
        (AGENT.replace("racks/*", "*"), ME, "task_queues.0: String should match"),
        (AGENT, {}, "(TASKCLUSTER_...): client_id: Field required"),
        (AGENT + 'credentials_file = "open"', {}, "credentials_file: "),
        (AGENT + 'credentials_file = "secret"', {}, "secret: "),
        (AGENT.replace("inventory.toml", "none.toml"), ME, "none.toml: "),
    ],
)
def test_an_agent_is_told_whom_to_ask_and_who_it_is(
    write: Callable[..., Path], text: str, environment: dict[str, str], complaint: str
) -> None:
    write("")
    with pytest.raises(ConfigError) as told:
        load_config(write(text, "agent.toml"), environment)
    assert complaint in str(told.value)
    assert VALUE not in str(told.value)


def test_credentials_may_be_in_a_private_file(write: Callable[..., Path]) -> None:
    write("[[host]]\n" + HOST)
    write(f'client_id = "filed"\naccess_token = "{VALUE}"', "secret")
    path = write(AGENT + 'credentials_file = "secret"', "agent.toml")
    config = load_config(path, {})
    assert config.credentials.client_id == "filed"
    assert VALUE not in repr(config)
    assert ("r", "m-7") in config.hosts


def test_the_command_checks_files_without_working(
    write: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ME.items():
        monkeypatch.setitem(os.environ, name, value)
    write("[[host]]\n" + HOST)
    path = write(AGENT, "agent.toml")
    assert main(["--config", str(path), "--check"]) == 0
    assert "1 machines, nothing wrong" in capsys.readouterr().out
    write("[[host]]\n")
    assert main(["--config", str(path), "--check"]) == UNUSABLE
    assert "host 1: worker_group" in capsys.readouterr().err


def test_the_example_of_the_documentation_can_be_used(write: Callable[..., Path]) -> None:
    text = Path("infra/docs/agent.md").read_text(encoding="utf-8")
    agent, hosts = (part.partition("```")[0] for part in text.split("```toml\n")[1:])
    for name in ("credentials", "key", "ipmi-password", "snmp-auth", "snmp-priv", "known_hosts"):
        path = write("", name)
        path.chmod(0o600)
        path.write_text(VALUE)
    write(f'client_id = "me"\naccess_token = "{VALUE}"', "credentials")
    write(hosts)
    config = load_config(write(agent, "agent.toml"), {"TICKET_TOKEN": VALUE})
    first, second = config.hosts.values()
    assert [first.has(rung) for rung in first.ladder] == [True, False, True, False, True]
    assert all(second.has(rung) for rung in second.ladder)
