"""HTTP on loopback in front of an ``App``: what the gateway does, small enough for tests."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.events import a_proxy_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Handle = Callable[[dict[str, Any]], dict[str, Any]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        split = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        event = a_proxy_event(
            self.command,
            split.path,
            query=split.query,
            headers=dict(self.headers.items()),
            body=self.rfile.read(length) if length else None,
        )
        answer = self.server.handle(event)
        body = answer["body"].encode()
        self.send_response(answer["statusCode"])
        for name, value in answer["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    handle: Handle

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(handle: Callable[[str], Handle]) -> Iterator[str]:
    """Serve what ``handle`` makes of the root URL; yields that URL."""
    server = _Server(("127.0.0.1", 0), _Handler)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    server.handle = handle(url)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
