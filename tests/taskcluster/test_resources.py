from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.taskcluster.resources import Endpoint, resource_candidates

BASE = "/api/worker-manager/v1"


@pytest.mark.parametrize(
    ("root_url", "endpoint"),
    [
        ("https://tc.example.com", Endpoint("tc.example.com", 443, "")),
        ("https://TC.example.com/", Endpoint("tc.example.com", 443, "")),
        ("http://127.0.0.1:5080", Endpoint("127.0.0.1", 5080, "")),
        ("http://localhost", Endpoint("localhost", 80, "")),
        ("https://x.example.com:8443/stage/one/", Endpoint("x.example.com", 8443, "/stage/one")),
    ],
)
def test_a_root_url_says_what_host_port_and_prefix_are_signed(
    root_url: str, endpoint: Endpoint
) -> None:
    assert Endpoint.of(root_url) == endpoint


@pytest.mark.parametrize("root_url", ["", "tc.example.com", "ftp://x", "https://", "https://x/?a"])
def test_anything_else_is_no_root_url(root_url: str) -> None:
    with pytest.raises(ValueError, match="root URL"):
        Endpoint.of(root_url)


def test_an_encoded_path_without_query_is_taken_as_it_is() -> None:
    path = f"{BASE}/worker-pool/a%2Fb"
    assert resource_candidates(path, []) == (path,)
    assert resource_candidates(path, [], prefix="/stage") == ("/stage" + path,)


@pytest.mark.parametrize(
    ("path", "signed"),
    [
        (f"{BASE}/worker-pool/a/b", f"{BASE}/worker-pool/a%2Fb"),
        (f"{BASE}/worker-pool/a/b", f"{BASE}/worker-pool/a/b"),
        (f"{BASE}/worker-pool/a/b/launch-configs", f"{BASE}/worker-pool/a%2Fb/launch-configs"),
        (f"{BASE}/workers/a/b/wg/i-1", f"{BASE}/workers/a%2Fb/wg/i-1"),
        (f"{BASE}/workers/a/b:/wg/i-1", f"{BASE}/workers/a%2Fb:/wg/i-1"),
        (
            f"{BASE}/workers/a_1/b-2/wg/i-1/should-terminate",
            f"{BASE}/workers/a_1%2Fb-2/wg/i-1/should-terminate",
        ),
        (
            "/api/secrets/v1/secret/worker-pool:a/b",
            "/api/secrets/v1/secret/worker-pool%3Aa%2Fb",
        ),
        ("/api/secrets/v1/secret/worker-pool:a/b", "/api/secrets/v1/secret/worker-pool:a%2Fb"),
        ("/api/queue/v1/task-queues/a/b/counts", "/api/queue/v1/task-queues/a%2Fb/counts"),
    ],
)
def test_a_decoded_path_is_tried_as_clients_encode_it(path: str, signed: str) -> None:
    assert signed in resource_candidates(path, [])


def test_the_service_part_of_a_path_is_never_encoded() -> None:
    for candidate in resource_candidates(f"{BASE}/workers/a/b/wg/wid", []):
        assert candidate.startswith(f"{BASE}/")
        assert unquote(candidate) == f"{BASE}/workers/a/b/wg/wid"


def test_a_bewit_never_signs_itself() -> None:
    assert resource_candidates("/api/x", [("bewit", "abc")]) == ("/api/x",)
    pairs = [("bewit", "abc"), ("limit", "5")]
    assert resource_candidates("/api%2Fx", pairs) == ("/api%2Fx?limit=5",)


def test_both_spellings_of_a_space_are_tried() -> None:
    assert set(resource_candidates("/a%2F", [("q", "x y")])) == {"/a%2F?q=x+y", "/a%2F?q=x%20y"}


def test_marks_that_javascript_leaves_alone_are_tried_both_ways() -> None:
    assert set(resource_candidates("/a%2F", [("q", "(!)")])) == {
        "/a%2F?q=%28%21%29",
        "/a%2F?q=(!)",
    }


def test_five_keys_are_tried_in_every_order_and_none_twice() -> None:
    candidates = resource_candidates("/a%2F", [(key, "1") for key in "abcde"])
    assert len(candidates) == len(set(candidates)) == 120
    assert candidates[0] == "/a%2F?a=1&b=1&c=1&d=1&e=1"


def test_more_keys_are_tried_as_given_and_sorted() -> None:
    pairs = [(key, "1") for key in "fedcba"]
    assert resource_candidates("/a%2F", pairs) == (
        "/a%2F?f=1&e=1&d=1&c=1&b=1&a=1",
        "/a%2F?a=1&b=1&c=1&d=1&e=1&f=1",
    )


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@given(st.lists(st.tuples(text.filter(lambda key: key != "bewit"), text), max_size=4), st.randoms())
def test_the_query_of_the_python_client_is_among_the_candidates(
    pairs: list[tuple[str, str]], rng: object
) -> None:
    query = "?" + urlencode(pairs) if pairs else ""
    seen_by_us = parse_qsl(query[1:])
    rng.shuffle(seen_by_us)  # type: ignore[attr-defined]
    assert f"/p%2F{query}" in resource_candidates("/p%2F", seen_by_us)
