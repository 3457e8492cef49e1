"""A RabbitMQ of a test's own, as Debian packages it, on free ports of loopback.

It has its own name, files, cookie and port mapper, so that it meets no other one on the machine,
and it leaves no process behind.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, Self

import pika  # type: ignore[import-untyped]

from infra.local.children import LOOPBACK, Child, free_port, is_free

SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Beneath the wrapper that would change the user and forget our environment."""

USER = PASSWORD = "guest"
START_SECONDS = 60


def is_installed() -> bool:
    return SCRIPT.exists() and shutil.which("epmd") is not None


class RabbitMq:
    """A broker that can be killed and started again; what it had stored it still has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_CRASH_DUMP_SECONDS": "0",
            "RABBITMQ_NODENAME": f"test-{os.getpid()}-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            # A busy wait of each of its schedulers would take the machine from other tests.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none +S 1:1",
        }
        (folder / "plugins").write_text("[].\n")
        self._mapper: Child | None = None
        self._server: Child | None = None

    @property
    def url(self) -> str:
        return f"amqp://{LOOPBACK}:{self.port}/%2F"

    def __enter__(self) -> Self:
        try:
            # In the foreground; started by the server it would outlive it.
            self._mapper = self._run("epmd", "epmd")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self._mapper is not None:
            self._mapper.stop()

    def start(self) -> None:
        self._server = self._run("rabbitmq", str(SCRIPT))
        self._server.wait_for_port(self.port, seconds=START_SECONDS)

    def kill(self) -> None:
        """End it as a crash of its machine would."""
        if self._server is not None:
            self._server.stop(grace_seconds=0)
            self._server = None
        while not is_free(self.port):
            time.sleep(0.02)

    def connect(self) -> Any:
        parameters = pika.URLParameters(self.url)
        parameters.credentials = pika.PlainCredentials(USER, PASSWORD)
        return pika.BlockingConnection(parameters)

    def _run(self, name: str, command: str) -> Child:
        log = self._folder / f"{name}.log"
        return Child(name, [command], environment=self._environment, log=log)
