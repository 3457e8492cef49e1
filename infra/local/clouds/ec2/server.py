"""The simulated EC2 on a loopback port: query API, metadata for machines, control side.

Routes::

    POST /                              the EC2 query API, every region
    GET  /_machines                     powered machines           (``metadata.powered``)
    GET  /_machines/<id>                one machine's metadata     (``metadata.metadata``)
    GET  /_machines/<id>/identity       its signed document        (``Ec2Cloud.identity``)
    POST /_machines/<id>/shutdown       the machine powers itself off
    GET  /_control/state, instances     counts; all instances      (``control``)
    GET  /_control/public-key           PEM of the key that signs identity documents
    POST /_control                      a control document         (``control.apply``)

Read next: ``service`` (the query API), ``control``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from infra.local.clouds.ec2 import control, metadata
from infra.local.clouds.ec2.cloud import Ec2Cloud
from infra.local.clouds.ec2.service import action_of, answer
from infra.local.clouds.server import CloudHandler, CloudServer

_MACHINE = re.compile(r"/_machines/(?P<instance_id>i-[0-9a-f]+)(?P<rest>/identity|/shutdown)?")


class _Handler(CloudHandler):
    @property
    def cloud(self) -> Ec2Cloud:
        """The cloud that is served now."""
        cloud: Ec2Cloud = self.owner.cloud
        return cloud

    def do_POST(self) -> None:
        """The query API, or a change on the control side."""
        body = self.read_body()
        if self.path == "/":
            self._query(body)
        elif self.path.startswith("/_"):
            self.give_json(lambda: self._change(body))
        else:
            self.send(404, "no such route", "text/plain")

    def do_GET(self) -> None:
        """Metadata of machines, and what is known on the control side."""
        if self.path == "/_control/public-key":
            pem = self.cloud.signing_key().public_pem()
            self.send(200, pem, "application/x-pem-file")
        else:
            self.give_json(self._look)

    def _query(self, form: str) -> None:
        self.wait_latency(action_of(form))
        given = answer(self.cloud, self.headers.get("Authorization", ""), form)
        self.give(given, content_type="text/xml;charset=UTF-8")

    def _change(self, body: str) -> Any:
        cloud = self.cloud
        if self.path == "/_control":
            return control.apply(cloud, json.loads(body))
        machine = _MACHINE.fullmatch(self.path)
        if machine is None or machine["rest"] != "/shutdown":
            raise LookupError(self.path)
        cloud.shut_down_from_inside(machine["instance_id"])
        return {}

    def _look(self) -> Any:
        cloud = self.cloud
        match self.path:
            case "/_machines":
                return metadata.powered(cloud)
            case "/_control/state":
                return control.state(cloud)
            case "/_control/instances":
                return control.instances(cloud)
        machine = _MACHINE.fullmatch(self.path)
        if machine is None or machine["rest"] == "/shutdown":
            raise LookupError(self.path)
        if machine["rest"] == "/identity":
            return cloud.identity(machine["instance_id"])
        return metadata.metadata(cloud, machine["instance_id"])


class Ec2Server(CloudServer[Ec2Cloud]):
    """Serves one simulated EC2; ``infra.local.clouds.server`` says how."""

    handler = _Handler
