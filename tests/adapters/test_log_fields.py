"""What the logs say is what was meant: no field of ours has the name of one of Powertools'."""

from __future__ import annotations

import ast
from pathlib import Path

import worker_manager

RESERVED = {"level", "location", "message", "service", "timestamp", "xray_trace_id"}
"""Powertools writes these itself; a field of the same name is lost, or replaces them."""

SOURCES = sorted(Path(worker_manager.__path__[0]).rglob("*.py"))


def fields(source: Path) -> list[str]:
    """``file:line name`` of every field that a call of the logger names."""
    calls = [node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call)]
    return [
        f"{source.name}:{call.lineno} {keyword.arg}"
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "logger"
        for keyword in call.keywords
    ]


def test_no_field_has_a_name_that_is_taken() -> None:
    named = [field for source in SOURCES for field in fields(source)]

    assert len(named) > 100
    assert [field for field in named if field.split()[1] in RESERVED] == []
