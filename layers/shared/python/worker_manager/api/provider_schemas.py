"""The wire: how a provider as a whole fares.  Where to read next: ``schemas``, which uses it."""

from __future__ import annotations

from typing import Literal

from worker_manager.api.validation import Answer, Moment


class ProviderStatus(Answer):
    """Whether a provider works: ``failing`` if it cannot start, or its credentials are refused.

    ``since`` and ``reason`` are only there when it fails.
    """

    state: Literal["ok", "failing"]
    since: Moment | None = None
    reason: str | None = None
