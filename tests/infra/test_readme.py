"""The README: what it says to paste can be pasted."""

from __future__ import annotations

import re
from codeop import compile_command
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_python_examples_can_be_pasted_into_an_interactive_interpreter() -> None:
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        entered: list[str] = []
        for line in example.splitlines():
            entered.append(line)
            # Raises SyntaxError where the interpreter would, as for a statement below a loop.
            if compile_command("\n".join(entered), symbol="single"):
                entered = []

        assert entered == [], "the last statement is not complete"
