"""Measuring the bill: the deeds of the whole fleet, then a month of them.

Where to read next: ``bill`` (the arithmetic), ``deeds`` (what is measured).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from infra.app import synthesise
from infra.settings import STAGES
from infra.stack import Code
from tests.benchmarks.assumptions import Assumptions, assumptions_table
from tests.benchmarks.bill import Standing, bill_table, bills, words
from tests.benchmarks.clouds import ROOT
from tests.benchmarks.deeds import measure_deeds
from tests.benchmarks.results import Detail, Measure
from tests.benchmarks.scene import a_scene

if TYPE_CHECKING:
    from tests.benchmarks.scene import Deeds


def measure_bill(*, scale: float = 1.0) -> tuple[list[Measure], Detail]:
    """Do everything a day has on a fleet of the discussion's size, and price a month of it."""
    assumptions = Assumptions()
    pools, workers = round(assumptions.pools * scale), round(assumptions.workers * scale)
    with a_scene(ROOT / "build" / "bench" / "bill") as scene:
        deeds = measure_deeds(scene, pools=max(2, pools), workers=max(14, workers))
    poll = deeds.by_name["shouldWorkerTerminate"].usage
    both = bills(deeds, assumptions, standing(deeds))
    found = [
        Measure("poll_dynamodb_requests", poll.asked_dynamodb, "requests", 1),
        Measure("poll_read_units", poll.read_units, "read units", 1),
        *(
            Measure(f"bill_{bill.front_door}", round(bill.usd), "$ a month", bound)
            for bill, bound in zip(both, (2_000, 1_000), strict=True)
        ),
    ]
    data = {
        "bills": [bill.to_json() for bill in both],
        "assumptions": asdict(assumptions),
        "deeds": {name: asdict(deed) for name, deed in deeds.by_name.items()},
    }
    texts = (
        bill_table(both),
        words(both, polling_usd(deeds, assumptions)),
        f"<details><summary>What is assumed</summary>\n\n{assumptions_table(assumptions)}\n\n"
        "</details>",
    )
    return found, Detail("bill", "\n\n".join(texts), data)


def polling_usd(deeds: Deeds, assumptions: Assumptions) -> float:
    """What the REST API would cost if every worker waited for tasks all the time."""
    rest, _ = bills(deeds, replace(assumptions, waiting_share=1.0), standing(deeds))
    return next(line.usd for line in rest.lines if line.key == "rest_requests")


def standing(deeds: Deeds) -> Standing:
    """What ``prod`` has of things that are paid for by their number."""
    kinds = _production()
    return Standing(
        metrics=len(deeds.metrics),
        alarms=kinds["AWS::CloudWatch::Alarm"],
        dashboards=kinds["AWS::CloudWatch::Dashboard"],
        secrets=kinds["AWS::SecretsManager::Secret"],
    )


@cache
def _production() -> Counter[str]:
    """Resources of ``prod`` by type, alarms in their stack included; layers are not needed."""
    with TemporaryDirectory() as folder:
        layer = Path(folder) / "layer"
        layer.mkdir()
        (layer / "nothing.txt").write_text("")
        code = Code(
            functions=ROOT / "functions",
            shared_layer=layer,
            runtime_layer=layer,
            pulse_layer=layer,
            cloud_layers={},
            hash_of=lambda folder: folder.name,
        )
        file = synthesise(STAGES["prod"], code=code, outdir=Path(folder) / "out")
        inner = file.parent.glob("*.nested.template.json")
        templates = [json.loads(each.read_text()) for each in (file, *inner)]
    return Counter(found["Type"] for each in templates for found in each["Resources"].values())
