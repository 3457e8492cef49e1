"""What Lambda hands to a function besides its event."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LambdaContext:
    """The parts that functions of ours use, with so many milliseconds left."""

    remaining_millis: int = 60_000
    function_name: str = "wm-local-function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:wm-local-function"
    aws_request_id: str = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_millis
