"""Doing an ``http`` action: one request to the service that has it, signed by us.

The caller has shown to hold the scopes that the action requires, and the request is signed with
those and no others, so that nobody gets through us what is not theirs.  Where it goes is looked at
again: since it was declared, the hosts that are allowed may have changed.
Read next: ``taskcluster.signed_http``, which sends it; ``hosts``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.actions.declared import expanded_url, filled_scopes
from worker_manager.actions.entities import Result
from worker_manager.taskcluster.signed_http import UnansweredError, UnreachedError

if TYPE_CHECKING:
    from worker_manager.actions.entities import Run
    from worker_manager.actions.hosts import Hosts
    from worker_manager.taskcluster.signed_http import Answer, SignedHttp

LONGEST_MESSAGE = 1000
"""Characters that are kept of what a service says."""
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class _RefusedError(Exception):
    """The URL is not one that may be called."""


class HttpCaller:
    """Calls the services of ``http`` actions."""

    def __init__(self, http: SignedHttp, hosts: Hosts) -> None:
        """``hosts`` are those that may be called."""
        self._http = http
        self._hosts = hosts

    def call(self, run: Run) -> tuple[Result, str]:
        """Do what a run asks for, once, and how that went, in plain words.

        ``UNKNOWN`` is when nobody knows whether it was done; ``ERROR`` when it was not.  Never
        raises for what another service does.
        """
        action = run.action
        method = str(action.method)
        content = json.dumps(_body(run), separators=(",", ":")).encode()
        try:
            url = expanded_url(action, run.target)
            self._check(url)
            answer = self._http.send(
                method,
                url,
                body=content if method in WITH_BODY else b"",
                scopes=filled_scopes(action, run.target),
                headers={"X-Action-Run-Id": run.run_id},
                check=self._check,
            )
        except (_RefusedError, ValueError) as error:
            return Result.ERROR, f"not called: its url {error}"
        except UnreachedError as error:
            return Result.ERROR, f"not done: {error}"
        except UnansweredError as error:
            return Result.UNKNOWN, f"no answer ({error}): it may have been done"
        return _told(answer)

    def _check(self, url: str) -> None:
        if (fault := self._hosts.fault_of(url)) is not None:
            raise _RefusedError(fault)


def _body(run: Run) -> dict[str, Any]:
    target = run.target
    names = {
        "taskQueueId": target.queue_id,
        "workerType": target.worker_type,
        "workerGroup": target.worker_group,
        "workerId": target.worker_id,
    }
    return {
        "runId": run.run_id,
        "action": run.action.name,
        "provisionerId": target.provisioner_id,
        **{name: value for name, value in names.items() if value is not None},
        "requestedBy": run.requested_by,
        "reason": run.reason,
        "params": dict(run.params),
    }


def _told(answer: Answer) -> tuple[Result, str]:
    result = Result.OK if 200 <= answer.status < 300 else Result.ERROR
    said = _plain(_message(answer.body))
    return result, f"HTTP {answer.status}: {said}" if said else f"HTTP {answer.status}"


def _message(body: bytes) -> str:
    """The ``message`` of a JSON object; nothing for any other body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = found.get("message") if isinstance(found, dict) else None
    return message if isinstance(message, str) else ""


def _plain(text: str) -> str:
    """In one line, without what is not meant to be read."""
    words = " ".join(text[: 4 * LONGEST_MESSAGE].split())
    return "".join(letter for letter in words if letter.isprintable())[:LONGEST_MESSAGE]
