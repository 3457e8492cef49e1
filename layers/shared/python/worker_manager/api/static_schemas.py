"""The wire: workers that somebody sets up by hand.

Where to read next: ``static_workers``, ``schemas`` (every other body).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from worker_manager.api.validation import NO_DISGUISE, Moment, PositiveNumber, Secret, Wire

LONGEST_OVERLAP = 2_592_000
"""Seconds, 30 days: for longer no two secrets of one worker are valid."""


class StaticProviderInfo(Wire):
    """What a static worker proves itself with."""

    static_secret: Secret


class CreateWorkerRequest(Wire):
    """A worker that somebody sets up by hand."""

    expires: Moment
    capacity: PositiveNumber | None = None
    provider_info: StaticProviderInfo | None = None


class UpdateWorkerRequest(Wire):
    """What is to change of a worker that somebody set up by hand.

    With a new secret the old one stays valid for ``previousSecretValidSeconds``, a day if not
    given; 0 ends it at once.  Without a new secret that ends an old one earlier, never later.
    """

    expires: Moment | None = None
    capacity: PositiveNumber | None = None
    provider_info: StaticProviderInfo | None = None
    previous_secret_valid_seconds: (
        Annotated[int, Field(ge=0, le=LONGEST_OVERLAP), NO_DISGUISE] | None
    ) = None
