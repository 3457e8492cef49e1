"""Synthesises the template of a stage: ``python -m infra.app``, or through the CDK's own tool."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aws_cdk import App

from infra.build_layers import CLOUDS, LAMBDA, LAYERS, PULSE, RUNTIME, content_hash
from infra.constructs.notices import NoticeForwarding
from infra.settings import STAGES, StageSettings
from infra.stack import Code, WorkerManagerStack

ROOT = Path(__file__).resolve().parent.parent
"""The top of the project."""

_CONTEXT = {
    # One statement for what belongs together: roles stay within IAM's limits and readable.
    "@aws-cdk/aws-iam:minimizePolicies": True,
    "@aws-cdk/core:target-partitions": ["aws"],
}


def synthesise(
    settings: StageSettings,
    *,
    code: Code,
    outdir: Path,
    in_place: bool = False,
    is_checked: bool = False,
) -> Path:
    """Write a stage's template and asset list into ``outdir``; return the template's path.

    With ``in_place`` assets are not copied: the asset list names the source folders.  With
    ``is_checked`` the rules of ``acknowledgements`` must hold, else ``RuntimeError``.
    """
    context = {**_CONTEXT, "aws:cdk:disable-asset-staging": True} if in_place else _CONTEXT
    app = App(outdir=str(outdir), context=context, analytics_reporting=False)
    stack = WorkerManagerStack(app, "WorkerManager", settings=settings, code=code)
    if is_checked:
        # Loading the rules takes seconds.
        from infra.acknowledgements import acknowledge, checked  # noqa: PLC0415

        acknowledge(stack)
        checked(app)
    for region in settings.notice_regions:
        NoticeForwarding(app, f"Notices-{region}", settings=settings, region=region)
    app.synth()
    return outdir / stack.template_file


def deployed_code() -> Code:
    """The code as it goes to Lambda; ``make layers`` builds the layer."""
    built = {LAMBDA.folder(layer): layer for layer in LAYERS}

    def hash_of(folder: Path) -> str | None:
        return content_hash(built[folder], target=LAMBDA) if folder in built else None

    return Code(
        functions=ROOT / "functions",
        shared_layer=ROOT / "layers" / "shared",
        runtime_layer=LAMBDA.folder(RUNTIME),
        pulse_layer=LAMBDA.folder(PULSE),
        cloud_layers={cloud: LAMBDA.folder(cloud) for cloud in CLOUDS},
        hash_of=hash_of,
    )


def main() -> None:
    """Synthesise the stage named in the context (``-c stage=NAME``), else ``dev``."""
    stage = App().node.try_get_context("stage") or "dev"
    if stage not in STAGES:
        sys.exit(f"There is no stage {stage!r} in infra/settings.py, only {', '.join(STAGES)}.")
    outdir = Path(os.environ.get("CDK_OUTDIR", "cdk.out"))
    print(synthesise(STAGES[stage], code=deployed_code(), outdir=outdir, is_checked=True))


if __name__ == "__main__":
    main()
