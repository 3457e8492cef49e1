"""Lists that are read side by side."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from worker_manager.core.errors import CloudError, CloudUnavailableError, NotAuthorizedError
from worker_manager.providers.azure.together import Together

if TYPE_CHECKING:
    from worker_manager.providers.visit import TimeLeft

TIMEOUT = timedelta(seconds=7)


def test_each_read_has_its_answer_and_its_time() -> None:
    lists = Together(TIMEOUT)
    one, two = lists.begin(lambda timeout: timeout()), lists.begin(lambda _: "two")
    lists.wait()
    assert (one.result(), two.result()) == (TIMEOUT, "two")


def test_a_list_that_fails_waits_for_no_other_and_ends_it_at_its_next_page() -> None:
    lists, first_page, next_page = Together(TIMEOUT), threading.Event(), threading.Event()

    def long(timeout: TimeLeft) -> None:
        timeout()
        first_page.set()
        next_page.wait(60)
        timeout()

    def refused(_: TimeLeft) -> None:
        first_page.wait(60)
        raise NotAuthorizedError("no")

    other = lists.begin(long)
    lists.begin(refused)
    with pytest.raises(NotAuthorizedError):
        lists.wait()
    assert not other.done()
    next_page.set()
    with pytest.raises(CloudError) as caught:
        other.result(60)
    assert type(caught.value) is CloudUnavailableError
