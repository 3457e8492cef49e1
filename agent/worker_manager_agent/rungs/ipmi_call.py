"""One call to a controller over IPMI; a program of its own, for ``ipmi``.

In: one JSON object.  Out: lines of JSON with one key each: ``sending`` right before what changes
something is sent, once and never again, then ``done``, ``refused`` or ``unclear``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyghmi.exceptions import IpmiException
from pyghmi.ipmi.command import Command
from pyghmi.ipmi.private.session import Session

CHASSIS, STATUS, CONTROL = 0, 1, 2
ON = 1
ANSWER_SECONDS = 3.0
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
    answer = _send_once(command, directive)
    if answer is None:
        return _say(unclear="no answer")
    if problem := _problem(answer):
        return _say(refused=f"{words}: {problem}")
    return _say(done=f"{words} was accepted")


def _send_once(command: Command, directive: int) -> dict[str, Any] | None:
    """What is answered, if anything is: a controller may go down with its machine."""
    answers: list[dict[str, Any]] = []
    try:
        command.ipmi_session.raw_command(
            netfn=CHASSIS,
            command=CONTROL,
            data=[directive],
            retry=False,
            callback=answers.append,
        )
        until = time.monotonic() + ANSWER_SECONDS
        while not answers and time.monotonic() < until:
            Session.wait_for_rsp(0.2)
    except (IpmiException, OSError):
        return None
    return answers[0] if answers else None


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
