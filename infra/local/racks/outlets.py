"""A power distribution unit over SNMP, as a Sentry3 one: v3 with both keys, or v2c."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pysnmp.carrier.asyncio.dgram import udp
from pysnmp.entity import config, engine
from pysnmp.entity.rfc3413 import cmdrsp, context
from pysnmp.smi import error, instrum

from infra.local.racks.ports import free_port

if TYPE_CHECKING:
    from infra.local.racks.machine import RackMachine

HOST = "127.0.0.1"
UNIT = (1, 3, 6, 1, 4, 1, 1718)
CONTROL_ACTION = (*UNIT, 3, 2, 3, 1, 11)
ON, OFF, REBOOT = 1, 2, 3


class PowerUnit:
    """A unit whose outlets feed machines; an outlet is named as printed beside it: ``aa8``."""

    def __init__(self, *, user: str, auth_key: str, priv_key: str, community: str) -> None:
        self._user = (user, auth_key, priv_key)
        self._community = community
        self._outlets: dict[tuple[int, ...], RackMachine] = {}
        self._engine: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = free_port(HOST)

    def feed(self, outlet: str, machine: RackMachine) -> None:
        """Plug a machine in."""
        tower, infeed = (ord(letter) - ord("a") + 1 for letter in outlet[:2])
        self._outlets[*CONTROL_ACTION, tower, infeed, int(outlet[2:])] = machine

    async def start(self) -> None:
        """Answer from now on."""
        self._engine = snmp = engine.SnmpEngine()
        transport = udp.UdpAsyncioTransport().open_server_mode((HOST, self.port))
        config.add_transport(snmp, udp.DOMAIN_NAME, transport)
        name, auth_key, priv_key = self._user
        config.add_v3_user(
            snmp,
            name,
            config.USM_AUTH_HMAC96_SHA,
            auth_key,
            config.USM_PRIV_CFB128_AES,
            priv_key,
        )
        config.add_vacm_user(snmp, 3, name, "authPriv", UNIT, UNIT)
        config.add_v1_system(snmp, "rack", self._community)
        config.add_vacm_user(snmp, 2, "rack", "noAuthNoPriv", UNIT, UNIT)
        served = context.SnmpContext(snmp)
        served.unregister_context_name(b"")
        served.register_context_name(b"", _Actions(self))
        cmdrsp.SetCommandResponder(snmp, served)
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Answer no more."""
        if self._engine is not None:
            self._engine.close_dispatcher()
        await asyncio.gather(*self._tasks)

    def control(self, oid: tuple[int, ...], action: int) -> bool:
        """Switch an outlet; whether there is such a one."""
        machine = self._outlets.get(oid)
        if machine is None:
            return False
        if action == REBOOT:
            doing = machine.restart("pdu")
        elif action == OFF:
            doing = machine.turn_off("pdu-off")
        else:
            doing = machine.turn_on("pdu-on")
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True


class _Actions(instrum.AbstractMibInstrumController):  # type: ignore[misc]
    """What can be written: the action of each outlet."""

    def __init__(self, unit: PowerUnit) -> None:
        self._unit = unit

    def write_variables(self, *bindings: Any, **_: Any) -> Any:
        """Do it, and answer with what was asked for."""
        for name, value in bindings:
            if not self._unit.control(tuple(name), int(value)):
                raise error.NoSuchInstanceError(idx=0)
        return bindings
