"""One call to a controller over IPMI; a program of its own, for ``ipmi``.

In: one JSON object.  Out: lines of JSON with one key each: ``sending`` right before what changes
something is sent, once and never again, then ``done``, ``refused`` or ``unclear``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyghmi.exceptions import IpmiException
from pyghmi.ipmi.command import Command

CHASSIS, STATUS, CONTROL = 0, 1, 2
ON = 1
WORDS = {1: "power on", 2: "power cycle", 3: "reset"}


def main() -> None:
    """Log in, look whether it is on, send one directive."""
    call = json.loads(sys.stdin.read())
    try:
        command = Command(
            bmc=call["address"],
            userid=call["user"],
            password=call["password"],
            port=call["port"],
            privlevel=call["privilege"],
            keepalive=False,
        )
        status = command.raw_command(netfn=CHASSIS, command=STATUS)
    except (IpmiException, OSError) as error:
        return _say(refused=f"no login: {error}")
    if problem := _problem(status):
        return _say(refused=f"no power state: {problem}")
    directive = call["control"] if status["data"][0] & 1 else ON
    words = WORDS[directive]
    _say(sending=words)
    try:
        answer = command.raw_command(netfn=CHASSIS, command=CONTROL, data=[directive], retry=False)
    except (IpmiException, OSError) as error:
        return _say(unclear=str(error))
    if not answer or answer.get("code") == 0xFFFF:
        return _say(unclear="no answer")
    if problem := _problem(answer):
        return _say(refused=f"{words}: {problem}")
    return _say(done=f"{words} was accepted")


def _problem(answer: dict[str, Any]) -> str | None:
    if answer.get("code") or "error" in answer:
        return str(answer.get("error") or answer["code"])
    return None


def _say(**said: str) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
    os._exit(0)  # pyghmi's thread waits for minutes; nothing is left to do
