"""Each rung against a real peer on loopback: what is done once, and what surely was not done."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from pydantic import SecretStr

from infra.local.racks.login import HOST
from infra.local.racks.machine import Condition
from infra.local.racks.rack import COMMUNITY
from tests.agent.stage import QUICK, reset
from worker_manager_agent.failures import NotDoneError
from worker_manager_agent.inventory import Rung, Ticket, load_inventory
from worker_manager_agent.look import Seen, Watch, is_up
from worker_manager_agent.rungs import Rungs, pdu, redfish
from worker_manager_agent.rungs.pdu import outlet_oid
from worker_manager_agent.rungs.ticket import Case, filled

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.racks.rack import Rack
    from worker_manager_agent.inventory import Host

CASE = Case("m-1", "q/w/rack-1/m-1", "run-1", "reboot", "me", 'it "hangs" {run}', "ssh: error")
OFF, ON = (f"{what} of outlet aa1 was accepted" for what in ("off", "on"))
NOBODY = SecretStr("nobody-knows-this")


@pytest.fixture
def host(rack: Rack, tmp_path: Path) -> Host:
    reset(rack)
    path = rack.write_files(tmp_path, worker_group="rack-1", look=QUICK)
    return load_inventory(path, {})["rack-1", "m-1"]


def changed(host: Host, table: str, **fields: Any) -> Host:
    facts = getattr(host, table).model_copy(update=fields)
    return host.model_copy(update={table: facts})


def climb(rung: Rung, host: Host) -> str:
    async def climb() -> str:
        async with aiohttp.ClientSession() as http:
            return await Rungs(http).climb(rung, host, CASE)

    return asyncio.run(climb())


@pytest.mark.parametrize(
    ("rung", "restarts", "words"),
    [
        (Rung.SSH, {"ssh": 1}, "'reboot' was run"),
        (Rung.IPMI_RESET, {"ipmi-reset": 1}, "reset was accepted"),
        (Rung.IPMI_CYCLE, {"ipmi-cycle": 1}, "power cycle was accepted"),
        (Rung.REDFISH_RESET, {"redfish-reset": 1}, "ForceRestart was accepted"),
        (Rung.REDFISH_CYCLE, {"redfish-cycle": 1}, "PowerCycle was accepted"),
        (Rung.PDU, {"pdu": 1}, "reboot of outlet aa1 was accepted"),
        (Rung.PDU_OFF_ON, {"pdu-off": 1, "pdu-on": 1}, f"{OFF}; {ON}"),
    ],
)
def test_a_rung_brings_the_machine_down_and_up_once(
    rack: Rack, host: Host, rung: Rung, restarts: dict[str, int], words: str
) -> None:
    async def climbed() -> tuple[str, Seen]:
        async with aiohttp.ClientSession() as http:
            watch = Watch(host, monotonic=time.monotonic)
            watching = asyncio.create_task(watch.outcome())
            said = await Rungs(http).climb(rung, host, CASE)
            watch.asked()
            return said, await watching

    assert asyncio.run(climbed()) == (words, Seen.CAME_UP)
    assert rack.machine("m-1").restarts == restarts
    assert not rack.machine("m-2").restarts


@pytest.mark.parametrize(
    ("rung", "fields", "words"),
    [
        (Rung.SSH, {"command": "rm -rf /"}, "ended with 1: only reboot is allowed"),
        (Rung.SSH, {"port": 1}, "no login: "),
        (Rung.IPMI_RESET, {"password": NOBODY}, "no login: Incorrect password"),
        (Rung.IPMI_CYCLE, {"port": 1, "timeout_seconds": 0.4}, "no answer in time"),
        (Rung.REDFISH_RESET, {"password": NOBODY}, "is answered with 401"),
        (Rung.REDFISH_CYCLE, {"system": "/redfish/v1/Systems/9"}, "answered with 404"),
        (Rung.REDFISH_RESET, {"url": f"http://{HOST}:1"}, "no answer: "),
        (Rung.PDU, {"outlet": "bb24"}, "refused with SNMP error"),
        (Rung.TICKET, {}, "nothing is known of m-1 for ticket"),
    ],
)
def test_what_was_refused_was_not_done(
    rack: Rack, host: Host, rung: Rung, fields: dict[str, Any], words: str
) -> None:
    wrong = changed(host, rung.partition("-")[0], **fields) if fields else host
    with pytest.raises(NotDoneError, match=words):
        climb(rung, wrong)
    assert not rack.machine("m-1").restarts


def test_an_ssh_host_key_that_is_not_known_gets_no_login(rack: Rack, host: Host) -> None:
    assert host.ssh is not None
    host.ssh.known_hosts.write_text("[127.0.0.1]:1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==\n")
    with pytest.raises(NotDoneError, match="no login: "):
        climb(Rung.SSH, host)
    assert not rack.machine("m-1").restarts


def test_a_community_that_is_not_known_gets_no_answer(rack: Rack, host: Host) -> None:
    wrong = changed(host, "pdu", v3=None, v2c_community=NOBODY, timeout_seconds=0.1)
    assert climb(Rung.PDU, wrong) == "reboot of outlet aa1 was sent: no answer"
    assert not rack.machine("m-1").restarts


def test_an_older_power_unit_is_asked_with_a_community(rack: Rack, host: Host) -> None:
    older = changed(host, "pdu", v3=None, v2c_community=SecretStr(COMMUNITY))
    assert "accepted" in climb(Rung.PDU, older)
    assert rack.machine("m-1").restarts == {"pdu": 1}


@pytest.mark.parametrize("rung", [Rung.IPMI_CYCLE, Rung.REDFISH_RESET])
def test_a_machine_that_is_off_is_switched_on(rack: Rack, host: Host, rung: Rung) -> None:
    machine = rack.machine("m-1")
    rack.do(machine.stop())
    assert not asyncio.run(is_up(host))
    climb(rung, host)
    assert machine.condition is Condition.BOOTING
    assert list(machine.restarts) == [f"{rung.partition('-')[0]}-on"]


def test_a_controller_that_cannot_cycle_switches_off_and_on(rack: Rack, host: Host) -> None:
    service = rack.places["m-1"].redfish
    service.kinds = ("On", "ForceOff", "ForceRestart")
    try:
        assert climb(Rung.REDFISH_CYCLE, host) == "switched off and on"
    finally:
        service.kinds = (*service.kinds, "PowerCycle")
    assert rack.machine("m-1").restarts == {"redfish-off": 1, "redfish-on": 1}


def test_power_that_does_not_come_on_again_is_never_told_as_not_done(
    rack: Rack, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*given: Any) -> str:
        if "On" in given or "on" in given:
            raise NotDoneError("there is a fault")
        return "off"

    monkeypatch.setattr(redfish, "_ask", refuse)
    monkeypatch.setattr(pdu, "_set", refuse)
    monkeypatch.setattr(rack.places["m-1"].redfish, "kinds", ("On", "ForceOff"))
    quick = changed(changed(host, "redfish", off_seconds=0.0), "pdu", off_seconds=0.0)
    words = "switched off, and perhaps not on again: there is a fault"
    assert climb(Rung.REDFISH_CYCLE, quick) == words
    assert climb(Rung.PDU_OFF_ON, quick) == "off; there is a fault"


def test_a_controller_that_cannot_switch_on_is_not_told_to_switch_off(
    rack: Rack, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rack.places["m-1"].redfish, "kinds", ("ForceOff",))
    with pytest.raises(NotDoneError, match="knows no On"):
        climb(Rung.REDFISH_CYCLE, host)
    assert not rack.machine("m-1").restarts


def test_an_answer_that_does_not_end_is_read_no_further(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redfish, "LONGEST_ANSWER", 99)
    with pytest.raises(NotDoneError, match="the answer is too long"):
        climb(Rung.REDFISH_RESET, host)


def test_an_answer_that_is_lost_is_not_asked_for_again(rack: Rack, host: Host) -> None:
    rack.places["m-1"].redfish.answers_late_seconds = 1.0
    hasty = changed(host, "redfish", timeout_seconds=0.2)
    assert "ForceRestart was sent" in climb(Rung.REDFISH_RESET, hasty)
    assert rack.machine("m-1").restarts == {"redfish-reset": 1}


def test_power_that_was_switched_off_is_switched_on_also_by_who_is_stopped(
    rack: Rack, host: Host
) -> None:
    machine = rack.machine("m-1")

    async def stopped() -> None:
        async with aiohttp.ClientSession() as http:
            climbing = asyncio.create_task(Rungs(http).climb(Rung.PDU_OFF_ON, host, CASE))
            while machine.is_on:
                await asyncio.sleep(0.01)
            climbing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await climbing

    asyncio.run(stopped())
    assert machine.restarts["pdu-on"] == 1
    assert machine.is_on


def test_whoever_is_next_switches_on_what_may_be_off(rack: Rack, host: Host) -> None:
    async def restored() -> None:
        async with aiohttp.ClientSession() as http:
            for rung in Rung:
                await Rungs(http).restore_power(rung, host)

    machine = rack.machine("m-1")
    rack.do(machine.stop())
    asyncio.run(restored())
    assert machine.is_on
    assert machine.restarts == {"redfish-on": 1}


def test_a_port_that_answers_without_its_banner_is_not_a_machine_that_is_up(
    rack: Rack, host: Host
) -> None:
    assert asyncio.run(is_up(host))
    rack.do(rack.machine("m-1").hang())
    socket.create_connection((HOST, host.look.port), 1).close()
    assert not asyncio.run(is_up(host))


def test_people_are_told_in_their_own_form(host: Host) -> None:
    told: list[tuple[Any, Any]] = []

    async def take(request: web.Request) -> web.Response:
        told.append((request.headers, await request.json()))
        return web.Response(status=201 if len(told) == 1 else 500)

    async def told_twice() -> None:
        app = web.Application()
        app.router.add_post("/tickets", take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, HOST, 0).start()
        url = f"http://{HOST}:{runner.addresses[0][1]}/tickets"
        body = {"title": "{host}: {reason}", "fields": ["{attempts}", 3, "{else}"]}
        ticket = Ticket(url=url, body=body).model_copy(update={"token": NOBODY})
        with_ticket = host.model_copy(update={"ticket": ticket})
        async with aiohttp.ClientSession() as http:
            assert await Rungs(http).climb(Rung.TICKET, with_ticket, CASE) == "a ticket was filed"
            with pytest.raises(NotDoneError, match="500"):
                await Rungs(http).climb(Rung.TICKET, with_ticket, CASE)
        await runner.cleanup()

    asyncio.run(told_twice())
    headers, said = told[0]
    assert said == {"title": 'm-1: it "hangs" {run}', "fields": ["ssh: error", 3, "{else}"]}
    assert headers["Authorization"] == f"Bearer {NOBODY.get_secret_value()}"
    assert headers["Idempotency-Key"] == "run-1"


@pytest.mark.parametrize(
    ("template", "text"),
    [("{a}{b}", "{b}2"), ("{", "{"), ("}{a", "}{a"), ("{{a}}", "{{b}}"), ("{a b}", "{a b}")],
)
def test_what_is_put_into_a_ticket_is_not_read_as_a_template(template: str, text: str) -> None:
    assert filled(template, {"a": "{b}", "b": "2"}) == text


def test_outlets_are_found_by_their_labels() -> None:
    assert outlet_oid("aa8") == "1.3.6.1.4.1.1718.3.2.3.1.11.1.1.8"
    assert outlet_oid("bc12") == "1.3.6.1.4.1.1718.3.2.3.1.11.2.3.12"
