"""Update expressions of moto, read once; it parses each anew and goes through it ten times.

Read next: ``quick_moto``, what else is done shorter.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from moto.dynamodb.parsing.ast_nodes import (  # type: ignore[attr-defined]
    DepthFirstTraverser,
    Node,
)
from moto.dynamodb.parsing.expressions import (  # type: ignore[attr-defined]
    UpdateExpressionParser,
)
from moto.dynamodb.parsing.validators import ActionCountValidator

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

_is_one: Callable[[Any, tuple[type, ...]], bool] = cache(issubclass)
"""As ``issubclass``, which asks abstract classes for long."""
_LOOK_AHEAD = DepthFirstTraverser.pre_processing_of_child


def read_expressions_once(patch: pytest.MonkeyPatch) -> None:
    """Validators copy what they change, so that what was parsed may be used again."""
    count = ActionCountValidator.verify_action_counts

    def count_once(self: ActionCountValidator, node: Any) -> Any:
        """What is below the root has been counted with it."""
        return count(self, node) if node.parent is None else node

    patch.setattr(UpdateExpressionParser, "make", staticmethod(cache(UpdateExpressionParser.make)))
    patch.setattr(Node, "__deepcopy__", _copy_of, raising=False)
    patch.setattr(DepthFirstTraverser, "traverse", _traverse)
    patch.setattr(ActionCountValidator, "verify_action_counts", count_once)


def _traverse(traverser: Any, root: Any) -> Any:
    """Process every node of a kind that is asked for, children first."""
    kinds = traverser.nodes_to_be_processed()
    looks_ahead = type(traverser).pre_processing_of_child is not _LOOK_AHEAD

    def walk(node: Any, place: int) -> Any:
        parent = node.parent
        for number, child in enumerate(node.children or ()):
            if looks_ahead:
                traverser.pre_processing_of_child(node, number)
            if _is_one(type(child), (Node,)):
                walk(child, number)
        if _is_one(type(node), kinds):
            node = traverser.process(node)
            node.parent = parent
            if parent:
                parent.children[place] = node
        return node

    return walk(root, -1)


def _copy_of(node: Any, memo: dict[int, Any]) -> Any:
    found = object.__new__(type(node))
    found.__dict__.update(node.__dict__)
    if node.children is not None:
        found.children = [copy.deepcopy(child, memo) for child in node.children]
        for child in found.children:
            if _is_one(type(child), (Node,)):
                child.set_parent(found)
    return found
