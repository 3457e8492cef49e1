"""Lists of the simulated Compute Engine: pages, filters, field masks, lag, unreachable zones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import compute_v1

from infra.local.clouds.compute.errors import ComputeError
from infra.local.clouds.compute.filters import predicate_of
from infra.local.clouds.compute.links import dig
from infra.local.clouds.compute.masks import mask_of
from infra.local.clouds.compute.seeding import seed, seed_disks
from infra.local.clouds.compute.shelf import Shelf
from tests.infra.compute_calls import PROJECT, ZONE, Compute, a_body, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.local.clouds.compute import ComputeCloud
    from tests.infra.virtual_clock import VirtualClock

ZONES = (ZONE, "us-east1-b", "europe-west4-c")


def test_all_zones_are_listed_page_by_page_in_one_list(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    for zone in ZONES:
        seed(compute_cloud, zone, 5, labels={"deployment": "ours"}, prefix=zone)
    names = compute.listed(max_results=4)
    assert sorted(names) == sorted(i.name for i in compute_cloud.instances())
    assert len(set(names)) == 15
    assert compute_cloud.calls_of("instances.aggregatedList") == 4


def test_one_zone_is_listed_alone(compute_cloud: ComputeCloud, compute: Compute) -> None:
    for zone in ZONES:
        seed(compute_cloud, zone, 3, labels={}, prefix=zone)
    request = compute_v1.ListInstancesRequest(project=PROJECT, zone=ZONE, max_results=2)
    pages = [list(page.items) for page in compute.instances.list(request=request).pages]
    assert [len(page) for page in pages] == [2, 1]
    assert all(i.zone.endswith(ZONE) for page in pages for i in page)


def test_what_goes_and_comes_while_a_list_is_read_spoils_no_page(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    ids = seed(compute_cloud, ZONE, 6, labels={})
    first = compute.raw(f"zones/{ZONE}/instances", maxResults="3")
    compute_cloud.forget(ids[1:4])
    seed(compute_cloud, ZONE, 1, labels={}, prefix="late")
    token = first["nextPageToken"]
    second = compute.raw(f"zones/{ZONE}/instances", maxResults="3", pageToken=token)
    assert [i["id"] for i in second["items"][:2]] == ids[4:]
    assert len(second["items"]) == 3
    assert "nextPageToken" not in second


def test_labels_filter_together(compute_cloud: ComputeCloud, compute: Compute) -> None:
    seed(compute_cloud, ZONE, 2, labels={"worker-pool": "a", "deployment": "ours"}, prefix="a")
    seed(compute_cloud, ZONE, 2, labels={"worker-pool": "b", "deployment": "ours"}, prefix="b")
    seed(compute_cloud, ZONE, 2, labels={"worker-pool": "a", "deployment": "theirs"}, prefix="c")
    both = compute.listed(filter="labels.worker-pool=a AND labels.deployment=ours")
    assert [name[0] for name in both] == ["a", "a"]
    assert len(compute.listed(filter="(labels.worker-pool:*) (labels.deployment=ours)")) == 4


class Thing:
    """Something that a filter can look at."""

    def look(self, path: Sequence[str]) -> Any:
        """The value at a path."""
        thing = {
            "name": "one",
            "labels": {"a": "b", "long-name": "0_x"},
            "scheduling": {"preemptible": True},
            "cpu": 4,
        }
        return dig(thing, path)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        ("name=one", True),
        ('name = "one"', True),
        ("name!=one", False),
        ("labels.a=b", True),
        ("labels.long-name=0_x", True),
        ("labels.c=b", False),
        ("labels.c!=b", True),
        ("labels.a:*", True),
        ("labels.c:*", False),
        ("scheduling.preemptible=true", True),
        ("cpu=4", True),
        ("name=one AND labels.a=c", False),
        ("name=two OR labels.a=b", True),
        ("(name=one) (labels.a=b)", True),
        ("name=one AND (labels.a=c OR labels.a=d)", False),
        ("labels.a=x OR labels.a=b AND name=two", False),
    ],
)
def test_filters_hold_as_they_say(text: str, *, holds: bool) -> None:
    assert predicate_of(text)(Thing()) is holds


@pytest.mark.parametrize("text", ["name", "name=", "(name=one", "name=one)", "name>one", "name:x"])
def test_senseless_filters_are_refused(text: str) -> None:
    with pytest.raises(ComputeError):
        predicate_of(text)


def test_a_field_mask_leaves_out_what_is_not_asked_for(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    ids = seed(compute_cloud, ZONE, 3, labels={"a": "b"})
    answer = compute.raw(
        "aggregated/instances",
        fields="items/*/instances(id,status,labels),nextPageToken",
        maxResults="2",
    )
    assert set(answer) == {"items", "nextPageToken"}
    expected = [{"id": i, "status": "RUNNING", "labels": {"a": "b"}} for i in ids[:2]]
    assert answer["items"] == {f"zones/{ZONE}": {"instances": expected}}
    compute_cloud.stop(ids[:1])
    again = compute.raw(f"zones/{ZONE}/instances", fields="items(status)")
    assert [i["status"] for i in again["items"]] == ["STOPPING", "RUNNING", "RUNNING"]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("a", {"a": {"x": 1, "y": 2}}),
        ("a/x", {"a": {"x": 1}}),
        ("a(x,y),b", {"a": {"x": 1, "y": 2}, "b": [{"x": 3, "z": 4}]}),
        ("b/z", {"b": [{"z": 4}]}),
        ("*/x", {"a": {"x": 1}, "b": [{"x": 3}]}),
        ("c", {}),
    ],
)
def test_masks_cut(text: str, cut: dict[str, Any]) -> None:
    assert mask_of(text).cut({"a": {"x": 1, "y": 2}, "b": [{"x": 3, "z": 4}]}) == cut


@pytest.mark.parametrize("text", ["a(", "a(b", "a)", "a b", "a/", "a,"])
def test_senseless_masks_are_refused(text: str) -> None:
    with pytest.raises(ComputeError):
        mask_of(text)


def test_zones_without_results_are_named_with_a_warning(compute: Compute) -> None:
    compute.insert()
    items = compute.raw("aggregated/instances")["items"]
    assert set(items[f"zones/{ZONE}"]) == {"instances"}
    assert items["zones/us-east1-b"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"


def test_an_unreachable_zone_fails_the_list_unless_a_part_is_enough(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    for zone in ZONES:
        seed(compute_cloud, zone, 1, labels={}, prefix=zone)
    compute_cloud.unreachable = {"us-east1-b"}
    assert refused(compute.listed) == (503, "backendError")
    part = compute.raw("aggregated/instances", returnPartialSuccess="true")
    assert part["items"]["zones/us-east1-b"]["warning"]["code"] == "UNREACHABLE"
    assert part["unreachables"] == ["zones/us-east1-b"]
    assert len(part["items"][f"zones/{ZONE}"]["instances"]) == 1
    assert compute.raw("zones/us-east1-b/instances")["error"]["code"] == 503
    assert len(compute.raw(f"zones/{ZONE}/instances")["items"]) == 1


def test_a_new_machine_is_known_by_name_before_lists_show_it(
    compute_cloud: ComputeCloud, compute: Compute, clock: VirtualClock
) -> None:
    compute_cloud.change_settings(list_lag_seconds=30)
    compute.insert()
    assert compute.listed() == []
    assert compute.get().name == "one"
    clock.advance(30)
    assert compute.listed() == ["one"]


def test_disks_are_listed_by_label_and_page(compute_cloud: ComputeCloud, compute: Compute) -> None:
    compute.insert(a_body())
    names = seed_disks(compute_cloud, ZONE, 2, labels={"deployment": "ours"})
    seed_disks(compute_cloud, "us-east1-b", 1, labels={"deployment": "theirs"})
    request = compute_v1.AggregatedListDisksRequest(
        project=PROJECT, filter="labels.deployment=ours", max_results=2
    )
    scopes = compute.disks.aggregated_list(request=request)
    found = {d.name: list(d.users) for _, scoped in scopes for d in scoped.disks}
    assert set(found) == {"one", *names}
    assert [bool(found[name]) for name in ("one", *names)] == [True, False, False]


@pytest.mark.parametrize("query", [{"maxResults": "501"}, {"pageToken": "x"}, {"fields": "a("}])
def test_senseless_pages_are_refused(compute: Compute, query: dict[str, str]) -> None:
    assert compute.raw(f"zones/{ZONE}/instances", **query)["error"]["code"] == 400


def test_a_shelf_closes_its_gaps() -> None:
    class Item:
        def __init__(self, sequence: int) -> None:
            self.sequence = sequence

    shelf: Shelf[Item] = Shelf()
    items = [Item(number) for number in range(1, 3001)]
    for item in items:
        shelf.put(item)
    for item in items[:2900]:
        shelf.take(item)
    assert list(shelf.after(0)) == items[2900:]
    assert list(shelf.after(2990)) == items[2990:]
    assert len(shelf) == 100


def test_large_fleets_are_seeded_and_listed_quickly(
    compute_cloud: ComputeCloud, compute: Compute
) -> None:
    started = time.process_time()
    seed(compute_cloud, ZONE, 5000, labels={"deployment": "ours"})
    token, count = "", 0
    while True:
        answer = compute.raw(
            "aggregated/instances",
            fields="items/*/instances(id,name,status,labels),nextPageToken",
            filter="labels.deployment=ours",
            pageToken=token,
        )
        count += len(answer["items"][f"zones/{ZONE}"]["instances"])
        if not (token := answer.get("nextPageToken", "")):
            break
    assert count == 5000
    assert compute_cloud.calls_of("instances.aggregatedList") == 10
    assert time.process_time() - started < 2
