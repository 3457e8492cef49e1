"""The simulated Azure on a loopback port: Resource Manager, metadata for machines, control side.

Routes::

    *    /subscriptions/...                      Azure Resource Manager    (``service``)
    GET  /_machines                              powered machines          (``metadata.powered``)
    GET  /_machines/<vm name>                    what a machine goes by    (``metadata.metadata``)
    POST /_machines/<vm name>/shutdown           the machine powers itself off
    GET  /_metadata/<vm name>/metadata/...       its instance metadata     (``metadata.serve``)
    GET  /_certificates/issuer.crt               DER of who issued the signer of attested data
    GET  /_control/state, resources              counts; all resources     (``control``)
    GET  /_control/root-certificate              PEM of the root of attested data
    POST /_control                               a control document        (``control.apply``)

Read next: ``service``, ``control``.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cryptography.hazmat.primitives.serialization import Encoding

from infra.local.clouds.arm import control, metadata
from infra.local.clouds.arm.cloud import ArmCloud
from infra.local.clouds.arm.identity import ISSUER_PATH, root_pem
from infra.local.clouds.arm.service import Request, action_of, answer
from infra.local.clouds.server import CloudHandler, CloudServer

_MACHINE = re.compile(r"/_machines/(?P<name>[^/]+)(?P<rest>/shutdown)?")
_METADATA = re.compile(r"/_metadata/(?P<name>[^/]+)(?P<rest>/metadata/.+)")


class _Handler(CloudHandler):
    @property
    def cloud(self) -> ArmCloud:
        """The cloud that is served now."""
        cloud: ArmCloud = self.owner.cloud
        return cloud

    def do_GET(self) -> None:
        """Read something: a resource, a machine's metadata, what the control side knows."""
        if self.path == "/_control/root-certificate":
            self.send(200, root_pem(self.cloud.root_key()), "application/x-pem-file")
        elif self.path == ISSUER_PATH:
            issuer = self.cloud.attestation(f"{self._base}{ISSUER_PATH}").issuer
            self._send_bytes(issuer.public_bytes(Encoding.DER), "application/pkix-cert")
        elif self.path.startswith("/_"):
            self.give_json(self._look)
        else:
            self._call("GET")

    def do_POST(self) -> None:
        """Do something to a machine or a deployment, or change something on the control side."""
        if self.path.startswith("/_"):
            body = self.read_body()
            self.give_json(lambda: self._change(body))
        else:
            self._call("POST")

    def do_PUT(self) -> None:
        """Make or change a resource."""
        self._call("PUT")

    def do_PATCH(self) -> None:
        """Change the tags of a resource."""
        self._call("PATCH")

    def do_DELETE(self) -> None:
        """Delete a resource."""
        self._call("DELETE")

    def do_HEAD(self) -> None:
        """See whether a resource is there."""
        self._call("HEAD")

    @property
    def _base(self) -> str:
        return self.owner.url

    def _call(self, method: str) -> None:
        request = Request(
            method,
            self.path,
            host=self.headers.get("Host", "localhost"),
            authorization=self.headers.get("Authorization", ""),
            if_none_match=self.headers.get("If-None-Match", ""),
            text=self.read_body(),
        )
        self.wait_latency(action_of(request))
        given = answer(self.cloud, request)
        if method == "HEAD":
            given = replace(given, body="")
        self.give(given, content_type="application/json; charset=utf-8")

    def _change(self, body: str) -> Any:
        cloud = self.cloud
        if self.path == "/_control":
            return control.apply(cloud, json.loads(body))
        machine = _MACHINE.fullmatch(self.path)
        if machine is None or machine["rest"] is None:
            raise LookupError(self.path)
        cloud.shut_down_from_inside(machine["name"])
        return {}

    def _look(self) -> Any:
        cloud, parts = self.cloud, urlsplit(self.path)
        match parts.path:
            case "/_machines":
                return metadata.powered(cloud)
            case "/_control/state":
                return control.state(cloud)
            case "/_control/resources":
                return control.resources(cloud)
        if found := _METADATA.fullmatch(parts.path):
            if self.headers.get("Metadata", "").lower() != "true":
                raise ValueError("Bad request. Required metadata header not specified")
            query = dict(parse_qsl(parts.query))
            return metadata.serve(cloud, found["name"], found["rest"], query, base=self._base)
        machine = _MACHINE.fullmatch(parts.path)
        if machine is None or machine["rest"] is not None:
            raise LookupError(self.path)
        return metadata.metadata(cloud, machine["name"])

    def _send_bytes(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class SimulatedArm(CloudServer[ArmCloud]):
    """Serves one simulated Azure; ``infra.local.clouds.server`` says how."""

    handler = _Handler
