"""Prunes google-cloud-compute to the services that we call, in a layer that is being built.

The package imports each of its 128 services, and one module with all of their two thousand
messages, whichever is asked for: most of a second of every cold start, and 80 MB.  Here the other
services are dropped, messages that the kept ones never mention are cut out, and the package's
``__init__`` loads what it is asked for.  Names and modules of what is kept stay as they were, so
the library does not know which of the two it meets.

Read next: ``build_layers``, which calls this; ``tests/infra`` compares the two.
"""

from __future__ import annotations

import ast
import re
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

SERVICES = frozenset({"disks", "instances", "zone_operations"})
"""Services whose clients the library makes, and those that the clients import themselves."""

_INIT = """
from importlib import import_module

from google.cloud.compute_v1 import gapic_version

__version__ = gapic_version.__version__

_CLIENTS = {clients!r}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _CLIENTS:
        return getattr(import_module(_CLIENTS[name]), name)
    return getattr(import_module("google.cloud.compute_v1.types.compute"), name)
"""

_TYPES = """
from google.cloud.compute_v1.types.compute import *  # noqa: F403
"""


def prune_compute(packages: Path, services: frozenset[str] = SERVICES) -> None:
    """Prune the SDK in ``packages``, where it has just been installed.

    Raises ``FileNotFoundError`` if it has not, ``ValueError`` for a service that it does not have.
    """
    sdk = packages / "google" / "cloud" / "compute_v1"
    clients = _drop_services(sdk / "services", services)
    messages = sdk / "types" / "compute.py"
    tree = ast.parse(messages.read_text())
    _keep_messages(tree, set(_mentioned(sdk.rglob("*.py"), but=messages)))
    _rewrite(messages, ast.unparse(ast.fix_missing_locations(_without_docstrings(tree))))
    _rewrite(sdk / "types" / "__init__.py", _TYPES)
    _rewrite(sdk / "__init__.py", _INIT.format(clients=clients))
    # Another name for the same package, which repeats all of its names.
    shutil.rmtree(sdk.parent / "compute", ignore_errors=True)


def _drop_services(folder: Path, services: frozenset[str]) -> dict[str, str]:
    """Remove the other services; of the kept ones, each client's class and module."""
    found = {path.name: path for path in folder.iterdir() if path.is_dir()}
    if unknown := services - found.keys():
        raise ValueError(f"google-cloud-compute has no service {', '.join(sorted(unknown))}")
    clients = {}
    for name, path in sorted(found.items()):
        if name not in services:
            shutil.rmtree(path)
            continue
        for client in re.findall(r"^class (\w+Client)\(", (path / "client.py").read_text(), re.M):
            clients[client] = f"google.cloud.compute_v1.services.{name}"
    return clients


def _mentioned(files: Iterable[Path], *, but: Path) -> Iterator[str]:
    """Names of messages in the code of the kept services."""
    for file in files:
        if file != but and file.parent != but.parent:
            yield from re.findall(r"\bcompute\.([A-Z]\w*)", file.read_text())


def _keep_messages(tree: ast.Module, wanted: set[str]) -> None:
    """Cut out what neither ``wanted`` nor anything that they are made of mentions."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    kept = _reachable(wanted & classes.keys(), classes)
    tree.body = [
        node for node in tree.body if not isinstance(node, ast.ClassDef) or node.name in kept
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "manifest":
            # proto-plus waits with a module's messages until all in its manifest are defined.
            node.value = ast.Set([ast.Constant(name) for name in sorted(kept)])


def _reachable(names: set[str], classes: Mapping[str, ast.ClassDef]) -> set[str]:
    kept: set[str] = set()
    todo = set(names)
    while todo:
        name = todo.pop()
        kept.add(name)
        todo |= (_parts(classes[name]) & classes.keys()) - kept
    return kept


def _parts(message: ast.ClassDef) -> set[str]:
    """Messages that a message names: as classes, or as text where they are defined further on."""
    found = set()
    for node in ast.walk(message):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
            found.add(str(node.value.value).partition(".")[0])
    return found


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """The same code without its descriptions, which are most of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _rewrite(file: Path, code: str) -> None:
    """Replace a file's code; its licence stays at its head."""
    licence = re.match(r"(?:#.*\n)*", file.read_text())
    file.write_text((licence.group() if licence else "") + code.lstrip("\n") + "\n")
