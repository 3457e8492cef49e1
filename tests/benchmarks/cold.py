"""Cold starts: what a fresh process imports and builds before it answers.

Of the API's functions, and of the loop of each cloud, with the SDK in its layer.

Times are of the processor; they say little of another machine, so each is held against the bare
libraries that such a function cannot do without, loaded in the same way right before.  Nothing is
asked of any network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from infra.build_layers import CLOUDS as LAYERS_OF_CLOUDS
from infra.build_layers import HERE, LAMBDA, RUNTIME
from tests.benchmarks.clouds import AWS, CLOUDS, ROOT, Cloud
from tests.benchmarks.results import Measure

RUNS = 7

LAYER_MB = 65
"""Of the runtime layer with its compiled files: Powertools, pydantic, PynamoDB, a pruned botocore
and mohawk (29 MB), cryptography (17), the stock Taskcluster client (19)."""

CLOUD_LAYER_MB = 80
"""Of a cloud's SDK with its compiled files."""

CLOUD_MB = 256
"""Resident memory of a cloud's function before its first event; it is given 512."""

_TIMED = """
import json, os, re, time
began = time.process_time()
{what}
seconds = time.process_time() - began
kilobytes = re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(json.dumps([seconds, int(kilobytes) / 1024]))
"""

BARE = """
import mohawk, pydantic
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from pynamodb.connection import Connection
Logger(service="x"), Metrics(namespace="x"), APIGatewayRestResolver()
Connection(region="us-east-1").client
"""
"""The libraries of an API in Lambda, and a client of its tables."""

OURS = """
import functions.{name}.handler
from worker_manager.settings import Settings
from worker_manager.wiring.api import Api
api = Api(Settings.of(os.environ))
api.stores.workers, api.tables.connection.client
"""
"""A function's handler, its wiring, and a client of its tables."""

OURS_IN_CLOUD = """
import boto3, functions.scan_pool.handler
from worker_manager.providers.protocol import Setup
from worker_manager.providers.registry import load_cloud
from worker_manager.settings import Settings
from worker_manager.wiring.loops import Loop
loop = Loop(Settings.of(os.environ))
loop.stores.workers, loop.tables.connection.client
load_cloud("{name}")(
    Setup(
        provider_id="{name}",
        deployment="cold",
        options={options},
        secret=lambda: "{{}}",
        endpoint={endpoint},
        session=loop.boto,
    )
)
"""
"""A handler of a cloud's loop, its wiring, a client of its tables, and its provider."""

ENVIRONMENT = {
    "WM_TABLE_POOLS": "pools",
    "WM_TABLE_PROVIDERS": "providers",
    "WM_TABLE_WORKERS": "workers",
    "WM_TABLE_ERRORS": "errors",
    "WM_TABLE_HEALTH": "health",
    "WM_DEPLOYMENT": "cold",
    "WM_ROOT_URL": "https://tc.example.com",
    "WM_PROVIDERS": "{}",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "dead",
    "AWS_SECRET_ACCESS_KEY": "dead",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def measure_cold(*, scale: float = 1.0) -> list[Measure]:
    """All of these, with compiled files; ``scale`` is of the number of runs."""
    apis = {name: OURS.format(name=name) for name in ("pools_api", "workers_api")}
    loops = {cloud.name: _in_cloud(cloud) for cloud in CLOUDS}
    what = {"bare": BARE, **apis, **loops}
    with TemporaryDirectory() as folder:
        compiled = Path(folder)
        rounds = [
            {name: cold_start(code, compiled, layer=name) for name, code in what.items()}
            for _ in range(1 + max(1, round(RUNS * scale)))
        ][1:]
    found: list[Measure] = []
    for name in loops:
        seconds = median(one[name].seconds for one in rounds)
        memory = median(one[name].megabytes for one in rounds)
        found += [
            Measure(f"cold_scan_pool_{name}_ms", round(1_000 * seconds), "ms", 1_000),
            Measure(f"cold_scan_pool_{name}_memory", round(memory), "MB", CLOUD_MB),
        ]
    for name in apis:
        seconds = median(one[name].seconds for one in rounds)
        slower = median(one[name].seconds / one["bare"].seconds for one in rounds)
        larger = median(one[name].megabytes / one["bare"].megabytes for one in rounds)
        found += [
            Measure(f"cold_{name}_ms", round(1_000 * seconds), "ms", 1_000),
            Measure(f"cold_{name}_time", round(slower, 2), "of bare libraries", 2),
            Measure(f"cold_{name}_memory", round(larger, 2), "of bare libraries", 1.5),
        ]
    for name in (RUNTIME, *LAYERS_OF_CLOUDS):
        layer = LAMBDA.folder(name)
        if layer.is_dir():
            most = LAYER_MB if name == RUNTIME else CLOUD_LAYER_MB
            found.append(Measure(f"{name}_layer", round(megabytes(layer), 1), "MB", most))
    return sorted(found, key=lambda measure: measure.name)


def _in_cloud(cloud: Cloud) -> str:
    endpoint = None if cloud is AWS else "http://127.0.0.1:9"
    return OURS_IN_CLOUD.format(
        name=cloud.name, options=dict(cloud.options), endpoint=repr(endpoint)
    )


class ColdStart(NamedTuple):
    """What one fresh process took."""

    seconds: float
    megabytes: float


def cold_start(what: str, compiled: Path, *, layer: str = "") -> ColdStart:
    """Run ``what`` in a fresh process, whose compiled files are in ``compiled``.

    It has the layer of that name as it was built for this machine, if it was.
    """
    environment = {
        **ENVIRONMENT,
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), str(ROOT / "layers/shared/python"), str(HERE.folder(layer) / "python")]
        ),
        "PYTHONPYCACHEPREFIX": str(compiled),
    }
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(what=what)],
        env=environment,
        cwd=compiled,
        check=True,
        capture_output=True,
        text=True,
    )
    return ColdStart(*json.loads(done.stdout.splitlines()[-1]))


def megabytes(folder: Path) -> float:
    """All that lies in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
