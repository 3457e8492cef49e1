"""What happens to machines while a chaotic demo plays: somebody, or their cloud, takes them.

Failing calls, lost answers and lists that lag are in the clouds' control documents from the start
(``scripts``); here is what needs to know which machines there are.
"""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from infra.local.standing import Machine, Standing, tell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.local.scripts import Script

TAKEN_BACK = {"ec2": "interrupt", "compute": "preempt", "arm": "evict"}
"""How each cloud takes a spot machine."""

DELETED_BY_HAND: Mapping[str, Any] = {
    "ec2": lambda name: {"forget": [name]},
    "compute": lambda name: {"forget_machines": [name]},
    "arm": lambda name: {"forget": {"virtualMachines": [name]}},
}
"""How a machine vanishes from each; on Google and Azure what it held stays behind."""

CALM: Mapping[str, Any] = {"faults": [], "settings": {"list_lag_seconds": 0}}


class Trouble:
    """Takes a machine of each cloud now and then, until it is over.

    ``urls`` are the clouds' by name; ``seed`` chooses the machines.  It begins at once.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        script: Script,
        *,
        seed: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._urls = urls
        self._script = script
        self._rng = Random(seed)
        self._clock = clock
        self._began = self._last = clock()
        self._is_calm = not script.is_chaotic
        self.counts: Counter[str] = Counter()

    @property
    def is_on(self) -> bool:
        """Whether more is to come."""
        return not self._is_calm

    def go_on(self, standing: Standing) -> None:
        """Do what is due."""
        now = self._clock()
        if self._is_calm:
            return
        if now - self._began > self._script.trouble_seconds:
            self.end()
        elif now - self._last > self._script.kill_seconds:
            self._last = now
            for cloud in self._urls:
                running = [one for one in standing.machines if one.cloud == cloud and one.runs]
                if running:
                    self._take(self._rng.choice(running))

    def end(self) -> None:
        """Let everything go well from now on."""
        if self._is_calm:
            return
        self._is_calm = True
        for cloud, url in self._urls.items():
            tell(url, {**CALM, "fates": []} if cloud == "arm" else CALM)

    def in_words(self) -> str:
        """What was done."""
        told = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        return f"machines killed: {told or 'none'}"

    def _take(self, machine: Machine) -> None:
        spot = machine.is_spot and self._rng.random() < 0.5
        document = (
            {TAKEN_BACK[machine.cloud]: [machine.name]}
            if spot
            else DELETED_BY_HAND[machine.cloud](machine.name)
        )
        self.counts["taken back" if spot else "deleted by hand"] += 1
        tell(self._urls[machine.cloud], document)
