"""The simulated Compute Engine on a loopback port: the API, metadata for machines, control side.

Routes::

    *    /compute/v1/...                the API                     (``service``)
    GET  /oauth2/v1/certs               certificates of the keys that sign identity tokens
    GET  /_metadata/<id>/computeMetadata/v1/...   a machine's metadata server
    GET  /_machines                     powered machines            (``metadata.powered``)
    GET  /_machines/<id>                one machine                 (``metadata.machine``)
    POST /_machines/<id>/shutdown       the machine powers itself off
    GET  /_control/state, instances     counts; all instances       (``control``)
    POST /_control                      a control document          (``control.apply``)

Read next: ``service`` (the API), ``control``.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from infra.local.clouds.compute import control, metadata
from infra.local.clouds.compute.cloud import ComputeCloud
from infra.local.clouds.compute.errors import ComputeError
from infra.local.clouds.compute.service import (
    CERTIFICATES,
    PREFIX,
    answer,
    call_of,
    certificates,
)
from infra.local.clouds.server import Answer, CloudHandler, CloudServer

_JSON = "application/json; charset=UTF-8"
_MACHINE = re.compile(r"/_machines/(?P<instance_id>\d+)(?P<rest>/shutdown)?")
_METADATA = re.compile(r"/_metadata/(?P<instance_id>\d+)/computeMetadata/v1/(?P<path>.*)")
_FLAVOR = {"Metadata-Flavor": "Google"}


class _Handler(CloudHandler):
    @property
    def cloud(self) -> ComputeCloud:
        """The cloud that is served now."""
        cloud: ComputeCloud = self.owner.cloud
        return cloud

    def do_POST(self) -> None:
        """The API, or a change on the control side."""
        if self.path.startswith(PREFIX):
            self._api()
        else:
            body = self.read_body()
            self.give_json(lambda: self._change(body))

    def do_DELETE(self) -> None:
        """The API."""
        self._api()

    def do_GET(self) -> None:
        """The API, certificates, metadata of machines, and what the control side knows."""
        if self.path.startswith(PREFIX):
            self._api()
        elif self.path == "/oauth2/v1/certs":
            self.wait_latency(CERTIFICATES.action)
            self.give(certificates(self.cloud), content_type=_JSON)
        elif self.path.startswith("/_metadata/"):
            self._metadata()
        else:
            self.give_json(self._look)

    def _api(self) -> None:
        body = self.read_body()
        try:
            project, call = call_of(self.command, self.path, body)
        except ComputeError as error:
            self.send(error.status, error.body(), _JSON)
            return
        self.wait_latency(call.action)
        self.give(answer(self.cloud, project, call), content_type=_JSON)

    def _metadata(self) -> None:
        split = urlsplit(self.path)
        asked = _METADATA.fullmatch(split.path)
        if self.headers.get("Metadata-Flavor") != "Google" or asked is None:
            self.send(403 if asked else 404, "Missing Metadata-Flavor:Google header.", "text/html")
            return
        try:
            server = metadata.Metadata(self.cloud, asked["instance_id"])
            given = Answer(body=server.answer(asked["path"], dict(parse_qsl(split.query))))
        except ComputeError as error:
            given = Answer(error.status, error.message)
        self.send(given.status, given.body, "application/text", _FLAVOR)

    def _change(self, body: str) -> Any:
        if self.path == "/_control":
            return control.apply(self.cloud, json.loads(body))
        machine = _MACHINE.fullmatch(self.path)
        if machine is None or not machine["rest"]:
            raise LookupError(self.path)
        self.cloud.shut_down_from_inside(machine["instance_id"])
        return {}

    def _look(self) -> Any:
        match self.path:
            case "/_machines":
                return metadata.powered(self.cloud)
            case "/_control/state":
                return control.state(self.cloud)
            case "/_control/instances":
                return control.instances(self.cloud)
        machine = _MACHINE.fullmatch(self.path)
        if machine is None or machine["rest"]:
            raise LookupError(self.path)
        return metadata.machine(self.cloud, machine["instance_id"])


class SimulatedCompute(CloudServer[ComputeCloud]):
    """Serves one simulated Compute Engine; ``infra.local.clouds.server`` says how."""

    handler = _Handler
