"""The ways to bring a machine back: one module each, and which is which.

Each asks for its thing once, and never again because an answer was lost.  ``NotDoneError`` says
that for certain nothing was done; what is returned, or any other error, leaves it to a look at the
machine whether it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker_manager_agent.failures import NotDoneError
from worker_manager_agent.inventory import Rung
from worker_manager_agent.rungs import ipmi, pdu, redfish, ssh, ticket

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import aiohttp

    from worker_manager_agent.inventory import Host
    from worker_manager_agent.rungs.ticket import Case


@dataclass(frozen=True, slots=True)
class Rungs:
    """What can be done to machines.  Cancelling it leaves none of them without power."""

    http: aiohttp.ClientSession

    async def climb(self, rung: Rung, host: Host, case: Case) -> str:
        """Do one thing to a machine; what was done, in words."""
        doing = self._doing(rung, host, case)
        if doing is None:
            raise NotDoneError(f"nothing is known of {host.title} for {rung}")
        return await doing

    def _doing(self, rung: Rung, host: Host, case: Case) -> Coroutine[Any, Any, str] | None:
        doing: Coroutine[Any, Any, str] | None = None
        match rung:
            case Rung.SSH if host.ssh:
                doing = ssh.reboot(host.ssh, host.address)
            case Rung.IPMI_RESET | Rung.IPMI_CYCLE if host.ipmi:
                doing = ipmi.switch(host.ipmi, cycle=rung is Rung.IPMI_CYCLE)
            case Rung.REDFISH_RESET if host.redfish:
                doing = redfish.reset(host.redfish, self.http)
            case Rung.REDFISH_CYCLE if host.redfish:
                doing = redfish.cycle(host.redfish, self.http)
            case Rung.PDU if host.pdu:
                doing = pdu.reboot(host.pdu)
            case Rung.PDU_OFF_ON if host.pdu:
                doing = pdu.off_and_on(host.pdu)
            case Rung.TICKET if host.ticket:
                doing = ticket.file(host.ticket, case, self.http)
        return doing

    async def restore_power(self, rung: str, host: Host) -> None:
        """Switch on what somebody may have switched off and had no time to switch on again.

        Switching on what is on does nothing.
        """
        if rung == Rung.PDU_OFF_ON and host.pdu:
            await pdu.turn_on(host.pdu)
        elif rung == Rung.REDFISH_CYCLE and host.redfish:
            await redfish.turn_on(host.redfish, self.http)
