"""Placeholders in what is declared: which there are, and what stands for them.

``<provisionerId>``, ``<workerType>``, ``<workerGroup>`` and ``<workerId>`` are all; an action of
some context has those that its targets have.
Read next: ``hosts`` (what URLs may be), ``declared``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from worker_manager.actions.entities import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager.actions.entities import Target

LONGEST = 38
"""Characters of what stands for a placeholder."""

_NAMES = ("provisionerId", "workerType", "workerGroup", "workerId")
_HAS = {Context.PROVISIONER: 1, Context.WORKER_TYPE: 2, Context.WORKER: 4}
_PLACEHOLDER = re.compile(r"<([^<>]*)>")
_DOTS = frozenset({".", ".."})


def fault_of(text: str, context: Context) -> str | None:
    """What is wrong with the placeholders of ``text``, in words; ``None`` if nothing is."""
    known = _NAMES[: _HAS[context]]
    for name in _PLACEHOLDER.findall(text):
        if name not in known:
            have = ", ".join(f"<{one}>" for one in known)
            return f"<{name}> is no placeholder of a {context}; there are {have}"
    if re.search(r"[<>]", _PLACEHOLDER.sub("", text)):
        return "< and > may only be around a placeholder"
    return None


def longest(text: str) -> int:
    """How many characters ``text`` can become."""
    return len(_PLACEHOLDER.sub("x" * LONGEST, text))


def fill_url(url: str, target: Target) -> str:
    """A URL for this target: what is filled in is percent-encoded, with nothing left out.

    ``ValueError`` for a target that lacks what a placeholder stands for, or whose name is a path.
    """
    return _fill(url, target, _encoded)


def fill_scope(scope: str, target: Target) -> str:
    """A scope for this target.  ``ValueError`` as of ``fill_url``."""
    return _fill(scope, target, str)


def _fill(text: str, target: Target, encode: Callable[[str], str]) -> str:
    values = dict(zip(_NAMES, _values(target), strict=True))

    def fill(found: re.Match[str]) -> str:
        value = values.get(found.group(1))
        if not value:
            raise ValueError(f"{target} has nothing for {found.group()}")
        return encode(value)

    # In one go, so that nothing that is filled in is taken for a placeholder.
    return _PLACEHOLDER.sub(fill, text)


def _values(target: Target) -> tuple[str | None, ...]:
    return target.provisioner_id, target.worker_type, target.worker_group, target.worker_id


def _encoded(value: str) -> str:
    if value in _DOTS:
        raise ValueError(f"{value!r} is a path and no name")
    return quote(value, safe="", errors="replace")
