"""The command itself, with what all its parts share.

Where to read next: ``mix``, its one part so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import taskcluster  # type: ignore[import-untyped]

from worker_manager_cli.deployment import UnreachableError
from worker_manager_cli.mix import mix


class Commands(click.Group):
    """Commands whose refusals by the deployment are told in a line, and not in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (UnreachableError, taskcluster.exceptions.TaskclusterFailure) as error:
            raise click.ClickException(_first_lines(error)) from error


def _first_lines(error: Exception) -> str:
    """What went wrong, without the request that follows it."""
    body = getattr(error, "body", None)
    told = body.get("message") if isinstance(body, Mapping) else None
    return str(told or error).split("\n---", 1)[0].strip()


@click.group(cls=Commands)
@click.option(
    "--root-url",
    envvar="TASKCLUSTER_ROOT_URL",
    help="Where the deployment is; TASKCLUSTER_ROOT_URL if not given.",
)
@click.pass_context
def main(context: click.Context, root_url: str | None) -> None:
    """What a worker manager knows of its workers.

    Who asks is said by TASKCLUSTER_CLIENT_ID, TASKCLUSTER_ACCESS_TOKEN and, for temporary
    credentials, TASKCLUSTER_CERTIFICATE.
    """
    context.obj = {**taskcluster.optionsFromEnvironment(), "rootUrl": root_url}


main.add_command(mix)
