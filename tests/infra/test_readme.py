"""The README and the pages that it leads to: what they say to paste can be pasted."""

from __future__ import annotations

import re
from codeop import compile_command
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("page", "count"), [("README.md", 3), ("infra/docs/registry.md", 4)])
def test_the_python_examples_can_be_pasted_into_an_interactive_interpreter(
    page: str, count: int
) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(examples) == count
    for example in examples:
        entered: list[str] = []
        for line in example.splitlines():
            entered.append(line)
            # Raises SyntaxError where the interpreter would, as for a statement below a loop.
            if compile_command("\n".join(entered), symbol="single"):
                entered = []

        assert entered == [], "the last statement is not complete"
