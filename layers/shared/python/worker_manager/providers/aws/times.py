"""Reading the times in EC2's answers, two an instance, without the SDK's guesswork.

The SDK's parser takes any spelling and 40 µs for it, a tenth of what reading a list costs.  EC2
writes ISO 8601, which Python reads in a fraction of one.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.utils import parse_timestamp

if TYPE_CHECKING:
    import boto3


def read_times_fast(session: boto3.Session) -> None:
    """Have the clients that ``session`` makes from now on read times with ``moment``."""
    factory = session._session.get_component("response_parser_factory")
    factory.set_parser_defaults(timestamp_parser=moment)


def moment(value: Any) -> datetime:
    """An aware time from ISO 8601 text, or what the SDK makes of anything else."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return parse_timestamp(value)
    return found if found.tzinfo else parse_timestamp(value)
