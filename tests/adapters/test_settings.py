"""A function's environment, understood or refused with the variable's name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from worker_manager.core.timing import Timing
from worker_manager.settings import (
    PAGE_BYTES,
    TABLE_VARIABLES,
    MissingSettingError,
    ProviderSettings,
    QueueKind,
    Settings,
    load,
)


def settings(**environment: str) -> Settings:
    return Settings.of(environment)


@pytest.mark.parametrize(
    ("name", "variable", "given", "understood"),
    [
        ("deployment", "WM_DEPLOYMENT", "stage-x", "stage-x"),
        ("root_url", "WM_ROOT_URL", "https://tc.example.com/", "https://tc.example.com"),
        ("bus", "WM_BUS", "events", "events"),
        ("queue_root_url", "WM_QUEUE_ROOT_URL", "https://tc/", "https://tc"),
        ("tick", "WM_TICK_SECONDS", "30", timedelta(seconds=30)),
        ("region", "AWS_DEFAULT_REGION", "eu-west-1", "eu-west-1"),
    ],
)
def test_a_required_setting_is_read_and_its_absence_names_it(
    name: str, variable: str, given: str, understood: Any
) -> None:
    assert getattr(settings(**{variable: given}), name) == understood
    for environment in ({}, {variable: ""}):
        with pytest.raises(MissingSettingError, match=variable):
            getattr(settings(**environment), name)


def test_the_region_that_lambda_sets_comes_first() -> None:
    assert settings(AWS_REGION="eu-west-1", AWS_DEFAULT_REGION="us-east-1").region == "eu-west-1"


def test_only_the_tables_that_were_given_are_known() -> None:
    assert settings(WM_TABLE_POOLS="p", WM_TABLE_ERRORS="e").tables == {
        "pools": "p",
        "pool_errors": "e",
    }
    everything = {variable: short for short, variable in TABLE_VARIABLES.items()}
    assert settings(**everything).tables == {short: short for short in TABLE_VARIABLES}


def test_providers_keep_their_order() -> None:
    given = settings(WM_PROVIDERS='{"b": {"providerType": "aws"}, "a": {"providerType": "static"}}')
    assert list(given.providers.values()) == [
        ProviderSettings("b", "aws"),
        ProviderSettings("a", "static"),
    ]


def test_a_function_has_one_of_the_providers() -> None:
    known = {"WM_PROVIDERS": '{"aws": {"providerType": "aws"}}'}
    assert settings(**known, WM_PROVIDER="aws").provider == ProviderSettings("aws", "aws")
    with pytest.raises(MissingSettingError, match="WM_PROVIDERS has no provider 'other'"):
        assert settings(**known, WM_PROVIDER="other").provider
    with pytest.raises(MissingSettingError, match="WM_PROVIDER is not set"):
        assert settings(**known).provider


def test_without_optional_settings_there_is_nothing() -> None:
    nothing = settings()
    assert (nothing.providers, nothing.provider_queues, nothing.trusted_ec2_keys) == ({}, {}, "")
    assert (nothing.trusted_azure_roots, nothing.google_certificates_url) == ("", None)
    assert nothing.azure_issuer_hosts == frozenset()
    assert nothing.tables == {}
    assert nothing.timing == Timing()


def test_hosts_of_issuers_are_separated_by_commas() -> None:
    given = settings(WM_AZURE_ISSUER_HOSTS="127.0.0.1:80, localhost:81,")
    assert given.azure_issuer_hosts == {"127.0.0.1:80", "localhost:81"}


def test_tasks_are_in_our_own_queue_and_nobody_waits_for_them_unless_a_stage_says_so() -> None:
    assert (settings().queue_kind, settings().claim_hold) == (QueueKind.BUILTIN, timedelta())
    given = settings(WM_QUEUE_BACKEND="events", WM_CLAIM_HOLD_SECONDS="1.5")
    assert (given.queue_kind, given.claim_hold) == (QueueKind.EVENTS, timedelta(seconds=1.5))


def test_queues_are_by_provider_and_purpose() -> None:
    text = '{"aws": {"provision": "https://sqs/1", "advance": "https://sqs/2"}}'
    assert settings(WM_QUEUES=text).provider_queues["aws"]["advance"] == "https://sqs/2"


@pytest.mark.parametrize(
    ("name", "variable", "given"),
    [
        ("providers", "WM_PROVIDERS", "{"),
        ("providers", "WM_PROVIDERS", "[]"),
        ("providers", "WM_PROVIDERS", '{"aws": {}}'),
        ("providers", "WM_PROVIDERS", '{"aws": "aws"}'),
        ("providers", "WM_PROVIDERS", '{"aws": {"providerType": 7}}'),
        ("provider_queues", "WM_QUEUES", "nonsense"),
        ("provider_queues", "WM_QUEUES", '"x"'),
        ("provider_queues", "WM_QUEUES", '{"aws": "https://sqs/1"}'),
        ("queue_kind", "WM_QUEUE_BACKEND", "none"),
        ("claim_hold", "WM_CLAIM_HOLD_SECONDS", "2.1"),
        ("claim_hold", "WM_CLAIM_HOLD_SECONDS", "-1"),
        ("tick", "WM_TICK_SECONDS", "often"),
        ("tick", "WM_TICK_SECONDS", "4"),
        ("tick", "WM_TICK_SECONDS", "61"),
        ("tick", "WM_TICK_SECONDS", "7"),
        ("tick", "WM_TICK_SECONDS", "-30"),
        ("tick", "WM_TICK_SECONDS", "nan"),
        ("timing", "WM_TICK_SECONDS", "often"),
        ("timing", "WM_LIST_LAG_SECONDS", "long"),
        ("timing", "WM_LIST_LAG_SECONDS", "-1"),
        ("timing", "WM_LIST_LAG_SECONDS", "inf"),
        ("timing", "WM_LIST_LAG_SECONDS", ""),
        ("timing", "WM_TIMING", "30"),
        ("timing", "WM_TIMING", "{"),
        ("timing", "WM_TIMING", '{"tik": 30}'),
        ("timing", "WM_TIMING", '{"location_stale": 30}'),
        ("timing", "WM_TIMING", '{"list_lag": "30"}'),
        ("timing", "WM_TIMING", '{"list_lag": true}'),
        ("timing", "WM_TIMING", '{"list_lag": -1}'),
        ("timing", "WM_TIMING", '{"list_lag": NaN}'),
        ("timing", "WM_TIMING", '{"list_lag": Infinity}'),
        ("timing", "WM_TIMING", '{"tick": 0}'),
        ("timing", "WM_TIMING", '{"scan": 45}'),
    ],
)
def test_a_value_that_makes_no_sense_names_its_variable(
    name: str, variable: str, given: str
) -> None:
    with pytest.raises(MissingSettingError, match=variable):
        getattr(settings(**{variable: given}), name)


def test_intervals_come_from_their_settings_and_others_by_name() -> None:
    timing = settings(
        WM_TICK_SECONDS="15", WM_LIST_LAG_SECONDS="2.5", WM_TIMING='{"resend": 60.5}'
    ).timing

    assert timing == Timing(
        tick=timedelta(seconds=15),
        scan=timedelta(seconds=15),
        list_lag=timedelta(seconds=2.5),
        resend=timedelta(seconds=60.5),
    )


def test_an_interval_given_by_name_comes_before_the_common_one() -> None:
    timing = settings(
        WM_TICK_SECONDS="15", WM_LIST_LAG_SECONDS="2", WM_TIMING='{"scan": 60, "list_lag": 0}'
    ).timing

    assert (timing.tick.seconds, timing.scan.seconds, timing.list_lag.seconds) == (15, 60, 0)


def test_the_environment_is_that_of_the_process_and_a_copy_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WM_BUS", "one")
    loaded = load()
    monkeypatch.setenv("WM_BUS", "two")
    assert loaded.bus == "one"


def test_nobody_wants_metrics_unless_a_stage_names_where_they_belong() -> None:
    assert settings().metrics_namespace == ""
    assert settings(POWERTOOLS_METRICS_NAMESPACE="stage").metrics_namespace == "stage"


def test_pools_are_told_apart_in_metrics_only_where_a_stage_says_so() -> None:
    assert not settings().metrics_by_pool
    assert not settings(WM_METRICS_BY_POOL="false").metrics_by_pool
    assert settings(WM_METRICS_BY_POOL="true").metrics_by_pool


def test_pages_are_as_large_as_the_front_door_takes() -> None:
    assert settings().page_bytes == PAGE_BYTES
    assert settings(WM_PAGE_BYTES="900000").page_bytes == 900_000
    with pytest.raises(MissingSettingError, match="WM_PAGE_BYTES"):
        _ = settings(WM_PAGE_BYTES="large").page_bytes


def test_signatures_are_checked_here_unless_a_service_is_named() -> None:
    assert settings().auth_root_url is None
    assert settings(WM_AUTH="local", WM_AUTH_ROOT_URL="https://tc").auth_root_url is None
    remote = settings(WM_AUTH="remote", WM_AUTH_ROOT_URL="https://tc.example.com/")
    assert remote.auth_root_url == "https://tc.example.com"
    with pytest.raises(MissingSettingError, match="WM_AUTH_ROOT_URL"):
        _ = settings(WM_AUTH="remote").auth_root_url
    with pytest.raises(MissingSettingError, match="WM_AUTH must be local or remote"):
        _ = settings(WM_AUTH="none").auth_root_url
