"""Secrets are never in a configuration: it says in which file or variable they are.

A file must belong to whoever runs the agent (or root), be a regular one, and give no rights to
anybody else.  Values are read when the agent starts and shown nowhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    ValidationInfo,
    model_validator,
)
from pydantic.functional_validators import BeforeValidator

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

LONGEST = 16 * 1024
"""Bytes of a secret at most."""


class Source(BaseModel):
    """Where a secret is: a file, or a variable of the environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Path | None = None
    env: str | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.file is None) == (self.env is None):
            raise ValueError("say either file or env")
        return self


def base_of(info: ValidationInfo) -> Path:
    """The folder that relative paths of a configuration begin at."""
    return Path((info.context or {}).get("base", "."))


def _read(value: Any, info: ValidationInfo) -> SecretStr:
    if not isinstance(value, dict):
        raise ValueError('a secret is not written here: {file = "..."} or {env = "..."}')
    source = Source.model_validate(value)
    if source.env is not None:
        environment: Mapping[str, str] = (info.context or {}).get("environment", os.environ)
        if not environment.get(source.env):
            raise ValueError(f"variable {source.env} is not set")
        return SecretStr(environment[source.env])
    assert source.file is not None
    return SecretStr(read_private(base_of(info) / source.file))


Secret = Annotated[
    SecretStr, BeforeValidator(_read), PlainSerializer(str), Field(description="file or env")
]
"""A field of a configuration that is told where its value is."""


def read_private(path: Path) -> str:
    """What a file says that nobody else can read; ``ValueError`` says what is wrong with it."""
    check_private(path)
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        raise ValueError(f"{path} is empty")
    return text


def check_private(path: Path) -> None:
    """Refuse a file that others can read or replace, or that is none."""
    try:
        found = path.lstat()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is not a regular file")
    if found.st_mode & 0o077:
        raise ValueError(f"{path} can be used by others: chmod 600 it")
    if found.st_uid not in (os.geteuid(), 0):
        raise ValueError(f"{path} belongs to somebody else")
    if found.st_size > LONGEST:
        raise ValueError(f"{path} is too large for a secret")
