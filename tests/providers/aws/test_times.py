"""Times are read fast, and as the SDK reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.utils import parse_timestamp

from worker_manager.providers.aws.times import moment, read_times_fast


def test_a_time_of_ec2_is_an_aware_time() -> None:
    expected = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert moment("2026-01-02T03:04:05.678Z") == expected


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-02T03:04:05.000Z",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05+02:00",
        "2026-01-02T03:04:05",
        "Fri, 02 Jan 2026 03:04:05 GMT",
        "1767323045",
        1767323045,
        1767323045.5,
    ],
)
def test_every_spelling_means_what_the_sdk_takes_it_for(value: Any) -> None:
    assert moment(value) == parse_timestamp(value)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="tomorrow"):
        moment("tomorrow")


def test_clients_of_a_session_read_times_so() -> None:
    session = boto3.Session()
    read_times_fast(session)
    factory = session._session.get_component("response_parser_factory")
    assert factory.create_parser("ec2")._timestamp_parser is moment
