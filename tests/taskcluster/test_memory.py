from __future__ import annotations

from datetime import timedelta

from tests.taskcluster.signing import NOW
from worker_manager.taskcluster.memory import Memory

SECOND = timedelta(seconds=1)


def test_an_answer_is_kept_until_its_end_and_not_at_it() -> None:
    memory: Memory[str] = Memory(10)
    memory.put("a", "yes", until=NOW + SECOND, now=NOW)
    assert memory.get("a", NOW + SECOND / 2) == "yes"
    assert memory.get("a", NOW + SECOND) is None
    assert memory.get("a", NOW) is None


def test_what_has_ended_is_not_kept_and_displaces_what_was() -> None:
    memory: Memory[str] = Memory(10)
    memory.put("a", "yes", until=NOW + SECOND, now=NOW)
    memory.put("a", "no more", until=NOW, now=NOW)
    assert memory.get("a", NOW) is None


def test_the_oldest_is_given_up_for_a_new_one() -> None:
    memory: Memory[str] = Memory(2)
    for key in ("a", "b", "a", "c"):
        memory.put(key, key, until=NOW + SECOND, now=NOW)
    assert [memory.get(key, NOW) for key in "abc"] == ["a", None, "c"]
