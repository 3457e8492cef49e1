"""One token for many threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from worker_manager.providers.azure.signing_in import SharedToken


class Entra:
    """Stands in for a credential: each token is valid for an hour."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked = 0
        self.refuses = False
        self.shared = SharedToken(self, clock=self.clock)
        self._waiting = 0
        self._all_wait = threading.Event()
        self._all_wait.set()

    def clock(self) -> float:
        self._waiting -= 1
        if not self._waiting:
            self._all_wait.set()
        return self.now

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        self.asked += 1
        assert self._all_wait.wait(60)
        self.now += 1
        if self.refuses:
            raise ClientAuthenticationError("no")
        return AccessToken(f"token {self.asked}", int(self.now) + 3600)

    def ask_side_by_side(self, threads: int) -> list[str]:
        """What each thread got; the first one's attempt ends when all have asked."""
        self._waiting = threads
        self._all_wait.clear()

        def ask(_: int) -> str:
            try:
                return self.shared.get_token("scope").token
            except ClientAuthenticationError:
                return "refused"

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(ask, range(threads)))


@pytest.mark.parametrize(("refuses", "answer"), [(False, "token 1"), (True, "refused")])
def test_many_threads_sign_in_once_however_it_ends(refuses: bool, answer: str) -> None:
    entra = Entra()
    entra.refuses = refuses
    assert entra.ask_side_by_side(16) == [answer] * 16
    assert entra.asked == 1


def test_an_old_token_is_exchanged_and_one_that_was_challenged_too() -> None:
    entra = Entra()
    entra.shared.get_token("scope")
    entra.now += 3000 - 1
    assert entra.shared.get_token("scope").token == "token 1"
    entra.now += 2
    assert entra.shared.get_token("scope").token == "token 2"
    assert entra.shared.get_token("scope", claims="{}").token == "token 3"


def test_who_asks_after_a_failure_tries_anew() -> None:
    entra = Entra()
    entra.refuses = True
    for _ in range(2):
        with pytest.raises(ClientAuthenticationError):
            entra.shared.get_token("scope")
        entra.now += 1
    entra.refuses = False
    assert entra.shared.get_token("scope").token == "token 3"
