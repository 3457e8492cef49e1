"""What an e-mail to the owner of a pool says: plain text, and no header but its subject.

Titles and descriptions come from clouds and workers; a subject keeps none of their line breaks or
control characters, so that nobody can add a header.  Where to read next: ``digests`` (when).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.core.digests import ErrorGroup
    from worker_manager.core.model import Pool

LONGEST_SUBJECT = 180
"""Characters; SES takes more, but nobody reads them."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One e-mail."""

    to: str
    subject: str
    text: str


def letter(pool: Pool, groups: Sequence[ErrorGroup], *, root_url: str) -> Letter:
    """Tell the pool's owner of these groups; there is at least one."""
    others = f" (and {len(groups) - 1} more)" if len(groups) > 1 else ""
    room = LONGEST_SUBJECT - len(others)
    subject = on_one_line(f"Worker pool {pool.pool_id}: {groups[0].title}")[:room] + others
    path = f"/api/worker-manager/v1/worker-pool-errors/{quote(pool.pool_id, safe='')}"
    parts = [
        f"Worker pool {pool.pool_id} (provider {pool.provider_id}) has errors.",
        *(_paragraph(group) for group in groups),
        f"All errors of this pool:\n{root_url}{path}",
        "Equal errors are counted from now on, and told in one mail after an hour or more.\n"
        "No more mail comes once the pool's emailOnError is false.",
    ]
    return Letter(pool.owner, subject, "\n\n".join(parts) + "\n")


def on_one_line(text: str) -> str:
    """``text`` with each run of control characters, separators and spaces as one space."""
    kept = [" " if unicodedata.category(char)[0] in "CZ" else char for char in text]
    return " ".join("".join(kept).split())


def _paragraph(group: ErrorGroup) -> str:
    """Kind, title, how often and when, and what the newest one says."""
    of_what = f", launch config {group.launch_config_id}" if group.launch_config_id else ""
    if group.waiting == 1:
        how_often = f"once, at {_moment(group.last)}"
    else:
        first, last = _moment(group.first), _moment(group.last)
        how_often = f"{group.waiting} times, first at {first}, last at {last}"
    lines = [
        f"{on_one_line(group.title)} ({group.kind}{of_what})",
        f"  {how_often}; error id {group.error_id}",
    ]
    if group.told is not None:
        lines.append(f"  (since the last mail about it, of {_moment(group.told)})")
    return "\n".join([*lines, *_indented(group.description)])


def _indented(text: str) -> list[str]:
    return [f"  {found}" for line in text.splitlines() if (found := on_one_line(line))]


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
