"""What something used of AWS, as amounts that can be added up and multiplied.

Where to read next: ``metering`` (where amounts come from), ``bill`` (what they cost).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add, sub


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Amounts of everything that is charged or waited for.

    ``cpu_seconds`` is processor time on the machine that measured; ``asked_*`` are calls that a
    function waits for, ``queue`` being the task queue.  ``sqs_sent`` are requests as SQS charges
    them (one for each 64 KB begun); messages cost again when they are received and deleted.
    ``events`` are charged likewise.  Bytes of logs are those of our own lines; ``came_in`` and
    ``went_out`` are bytes of HTTP at the front door.
    """

    calls: float = 0
    cpu_seconds: float = 0
    asked_dynamodb: float = 0
    asked_sqs: float = 0
    asked_events: float = 0
    asked_s3: float = 0
    asked_ec2: float = 0
    asked_queue: float = 0
    read_units: float = 0
    write_units: float = 0
    sqs_sent: float = 0
    fifo_messages: float = 0
    standard_messages: float = 0
    events: float = 0
    s3_puts: float = 0
    s3_gets: float = 0
    log_bytes: float = 0
    came_in: float = 0
    went_out: float = 0

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        return _made_of(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: Usage) -> Usage:
        """What this used more than ``other``."""
        return _made_of(*map(sub, astuple(self), astuple(other)))

    def times(self, factor: float) -> Usage:
        """The same, so many times."""
        return _made_of(*(amount * factor for amount in astuple(self)))


def _made_of(*amounts: float) -> Usage:
    return Usage(**dict(zip(Usage.__dataclass_fields__, amounts, strict=True)))
