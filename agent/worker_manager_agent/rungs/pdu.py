"""Power by the outlet that feeds the machine, over SNMP.

Written for Sentry3 units (Server Technology): an outlet has a control action, and is found by
tower, infeed and number.  What could hurt is never sent twice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pysnmp.hlapi.v3arch import asyncio as snmp
from pysnmp.proto import errind

from worker_manager_agent.failures import NotDoneError
from worker_manager_agent.rungs.wholly import wholly

if TYPE_CHECKING:
    from worker_manager_agent.inventory import Pdu, SnmpUser

CONTROL_ACTION = "1.3.6.1.4.1.1718.3.2.3.1.11"
"""``outletControlAction`` of Sentry3-MIB, to be followed by tower, infeed and outlet."""
ON, OFF, REBOOT = 1, 2, 3
ON_RETRIES = 3
"""Switching on what is on does nothing: only this is sent again without an answer."""

_AUTH = {
    "sha": snmp.USM_AUTH_HMAC96_SHA,
    "sha256": snmp.USM_AUTH_HMAC192_SHA256,
    "sha512": snmp.USM_AUTH_HMAC384_SHA512,
}
_PRIV = {"aes": snmp.USM_PRIV_CFB128_AES, "aes256": snmp.USM_PRIV_CFB256_AES}


def outlet_oid(label: str) -> str:
    """Where an outlet is switched: ``aa8`` is the eighth of the first infeed of tower one."""
    tower, infeed = (ord(letter) - ord("a") + 1 for letter in label[:2])
    return f"{CONTROL_ACTION}.{tower}.{infeed}.{int(label[2:])}"


async def reboot(facts: Pdu) -> str:
    """Let the unit switch the outlet off and on again by itself."""
    return await _set(facts, REBOOT, "reboot")


async def off_and_on(facts: Pdu) -> str:
    """Switch the outlet off, wait, and switch it on; it is never left off by being stopped."""
    return await wholly(_off_and_on(facts))


async def turn_on(facts: Pdu) -> str:
    """Switch the outlet on."""
    return await _set(facts, ON, "on")


async def _off_and_on(facts: Pdu) -> str:
    """From the first answer on it may be off: whatever follows, that is not "not done"."""
    off = await _set(facts, OFF, "off")
    await asyncio.sleep(facts.off_seconds)
    try:
        on = await turn_on(facts)
    except NotDoneError as error:
        on = str(error)
    return f"{off}; {on}"


async def _set(facts: Pdu, value: int, words: str) -> str:
    engine = snmp.SnmpEngine()
    try:
        target = await snmp.UdpTransportTarget.create(
            (facts.address, facts.port),
            timeout=facts.timeout_seconds,
            retries=ON_RETRIES if value == ON else 0,
        )
        oid = snmp.ObjectIdentity(outlet_oid(facts.outlet))
        indication, status, _, _ = await snmp.set_cmd(
            engine,
            _who(facts),
            target,
            snmp.ContextData(),
            snmp.ObjectType(oid, snmp.Integer32(value)),
            lookupMib=False,
        )
    except (OSError, ValueError) as error:
        raise NotDoneError(f"no unit: {error}") from error
    finally:
        engine.close_dispatcher()
    return _judged(indication, int(status), f"{words} of outlet {facts.outlet}")


def _who(facts: Pdu) -> Any:
    if facts.v3 is not None:
        return _user(facts.v3)
    assert facts.v2c_community is not None
    return snmp.CommunityData(facts.v2c_community.get_secret_value(), mpModel=1)


def _user(user: SnmpUser) -> Any:
    return snmp.UsmUserData(
        user.name,
        authKey=user.auth_key.get_secret_value(),
        privKey=user.priv_key.get_secret_value(),
        authProtocol=_AUTH[user.auth_protocol],
        privProtocol=_PRIV[user.priv_protocol],
    )


def _judged(indication: Any, status: int, words: str) -> str:
    if isinstance(indication, errind.RequestTimedOut):
        return f"{words} was sent: no answer"
    if indication is not None:
        raise NotDoneError(f"{words}: {indication}")
    if status:
        raise NotDoneError(f"{words} was refused with SNMP error {status}")
    return f"{words} was accepted"
