"""What an e-mail to the owner of a pool says: plain text, and no header but its subject.

Titles and descriptions come from clouds and workers; a subject keeps none of their line breaks or
control characters, so that nobody can add a header.  Where to read next: ``digests`` (when).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from worker_manager.core.error_groups import OTHER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.core.digests import Topic
    from worker_manager.core.model import Pool

LONGEST_SUBJECT = 180
"""Characters; SES takes more, but nobody reads them."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One e-mail."""

    to: str
    subject: str
    text: str


def letter(pool: Pool, topics: Sequence[Topic], *, root_url: str) -> Letter:
    """Tell the pool's owner of these topics; there is at least one."""
    others = f" (and {len(topics) - 1} more)" if len(topics) > 1 else ""
    room = LONGEST_SUBJECT - len(others)
    subject = on_one_line(f"Worker pool {pool.pool_id}: {topics[0].alike.title}")[:room] + others
    path = f"/api/worker-manager/v1/worker-pool-errors/{quote(pool.pool_id, safe='')}"
    parts = [
        f"Worker pool {pool.pool_id} (provider {pool.provider_id}) has errors.",
        *(_paragraph(topic) for topic in topics),
        f"All errors of this pool:\n{root_url}{path}",
        "Equal errors are counted from now on, and told in one mail after an hour or more.\n"
        "No more mail comes once the pool's emailOnError is false.",
    ]
    return Letter(pool.owner, subject, "\n\n".join(parts) + "\n")


def on_one_line(text: str) -> str:
    """``text`` with each run of control characters, separators and spaces as one space."""
    kept = [" " if unicodedata.category(char)[0] in "CZ" else char for char in text]
    return " ".join("".join(kept).split())


def _paragraph(topic: Topic) -> str:
    """Kind, title, how often and when, and what the newest one says."""
    alike = topic.alike
    of_what = f", code {on_one_line(alike.code)}" if alike.code != OTHER else ""
    of_what += f", launch config {alike.launch_config_id}" if alike.launch_config_id else ""
    if topic.waiting == 1:
        how_often = f"once, at {_moment(topic.last)}"
    else:
        first, last = _moment(topic.first), _moment(topic.last)
        how_often = f"{topic.waiting} times, first at {first}, last at {last}"
    lines = [
        f"{on_one_line(alike.title)} ({alike.kind}{of_what})",
        f"  {how_often}; error id {topic.error_id}",
    ]
    if topic.told is not None:
        lines.append(f"  (since the last mail about it, of {_moment(topic.told)})")
    return "\n".join([*lines, *_indented(topic.description)])


def _indented(text: str) -> list[str]:
    return [f"  {found}" for line in text.splitlines() if (found := on_one_line(line))]


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
