"""Reading files of an agent, and telling what is wrong with them without telling secrets.

Read next: ``config`` and ``inventory``, whose files they are.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from worker_manager_agent.failures import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

LOOPBACK = ("127.0.0.1", "localhost", "::1")

Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,38}$")]
Seconds = Annotated[float, Field(ge=0, le=4 * 3600, strict=True, allow_inf_nan=False)]
Period = Annotated[Seconds, Field(gt=0)]


def _sealed(url: str) -> str:
    """The URL, if nobody on the way can read what is sent there; ``ValueError`` otherwise."""
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    if scheme != "https" and name not in LOOPBACK:
        raise ValueError("https is needed, but on this machine")
    return url


Url = Annotated[str, StringConstraints(pattern=r"^https?://[^@\s]+$"), AfterValidator(_sealed)]
"""A URL without a user; of https, but on this machine."""
Origin = Annotated[Url, StringConstraints(pattern=r"^https?://[^/@\s]+$")]
"""One without a path."""


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file; ``ConfigError`` if it is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error


def complaints(error: ValidationError) -> Iterator[str]:
    """What was wrong, field by field, without the values: they may be secrets."""
    for each in error.errors(include_input=False, include_url=False, include_context=False):
        yield _complaint(each)


def _complaint(error: ErrorDetails) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "it"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}"
