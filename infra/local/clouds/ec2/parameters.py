"""The parameters of a call: EC2's dotted form fields, read as the tree they stand for.

``TagSpecification.1.Tag.2.Key=Name`` is the second tag of the first specification.  Read next:
``actions``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Union
from urllib.parse import parse_qsl

from infra.local.clouds.ec2.errors import Ec2Error, invalid_value, missing

if TYPE_CHECKING:
    from collections.abc import Mapping

Tree = dict[str, Union[str, "Tree"]]


class Parameters:
    """Typed access to one level of the tree; what is malformed raises an ``Ec2Error``."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @classmethod
    def parse(cls, form: str) -> Parameters:
        """Read an ``application/x-www-form-urlencoded`` body."""
        tree: Tree = {}
        for name, value in parse_qsl(form, keep_blank_values=True):
            _plant(tree, name.split("."), value)
        return cls(tree)

    def __contains__(self, name: str) -> bool:
        return name in self._tree

    def text(self, name: str, default: str = "") -> str:
        """The value of a plain parameter, or ``default``."""
        value = self._tree.get(name, default)
        if not isinstance(value, str):
            raise invalid_value("(structure)", name)
        return value

    def required(self, name: str) -> str:
        """The value of a plain parameter that must be there."""
        if value := self.text(name):
            return value
        raise missing(name)

    def flag(self, name: str) -> bool:
        """Whether a boolean parameter is given and true."""
        return self.text(name).lower() == "true"

    def integer(self, name: str, *, default: int, low: int, high: int) -> int:
        """A whole number between ``low`` and ``high``, both included."""
        text = self.text(name)
        if not text:
            return default
        if not text.isdecimal() or not low <= int(text) <= high:
            message = (
                f"Value ( {text} ) for parameter {name} is invalid. "
                f"Expecting a value between {low} and {high}."
            )
            raise Ec2Error("InvalidParameterValue", message)
        return int(text)

    def below(self, name: str) -> Parameters:
        """The structure under ``name``; empty when it is not given."""
        value = self._tree.get(name, {})
        return Parameters(value if isinstance(value, dict) else {})

    def structures(self, name: str) -> list[Parameters]:
        """The numbered structures under ``name``, in order."""
        return [Parameters(v) for v in self._numbered(name) if isinstance(v, dict)]

    def texts(self, name: str) -> list[str]:
        """The numbered plain values under ``name``, in order."""
        return [v for v in self._numbered(name) if isinstance(v, str)]

    def fingerprint(self, *, leaving_out: frozenset[str]) -> str:
        """A hash that is equal for two calls exactly when all their other parameters are."""
        kept = {name: value for name, value in self._tree.items() if name not in leaving_out}
        return hashlib.sha256(repr(_ordered(kept)).encode()).hexdigest()

    def _numbered(self, name: str) -> list[str | Tree]:
        value = self._tree.get(name, {})
        if not isinstance(value, dict):
            return []
        numbers = sorted((int(key), key) for key in value if key.isdecimal())
        return [value[key] for _, key in numbers]


def _plant(tree: Tree, path: list[str], value: str) -> None:
    *branches, leaf = path
    for branch in branches:
        deeper = tree.setdefault(branch, {})
        if not isinstance(deeper, dict):
            raise invalid_value(value, ".".join(path))
        tree = deeper
    tree[leaf] = value


def _ordered(value: str | Mapping[str, str | Tree]) -> object:
    if isinstance(value, str):
        return value
    return [(name, _ordered(deeper)) for name, deeper in sorted(value.items())]
