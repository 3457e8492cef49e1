"""The README: what it says to paste can be pasted."""

from __future__ import annotations

import re
from codeop import compile_command
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_python_example_can_be_pasted_into_an_interactive_interpreter() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    entered: list[str] = []

    for line in example.splitlines():
        entered.append(line)
        # Raises SyntaxError where the interpreter would, as for a statement right below a loop.
        if compile_command("\n".join(entered), symbol="single"):
            entered = []

    assert entered == [], "the last statement is not complete"
