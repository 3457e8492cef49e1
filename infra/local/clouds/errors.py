"""Refusals of simulated clouds.  Each cloud derives its own, with its own codes."""

from __future__ import annotations


class RefusalError(Exception):
    """A call that is refused: ``code`` is the cloud's word for it, ``status`` that of HTTP."""

    def __init__(self, code: str, message: str, *, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
