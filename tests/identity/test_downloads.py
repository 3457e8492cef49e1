from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from worker_manager.core.errors import ProofUnavailableError
from worker_manager.identity.downloads import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWERS = {
    "/plain": b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nhello",
    "/counted?a=1": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
    "/long": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101,
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
    "/moved": b"HTTP/1.1 302 Found\r\nLocation: /plain\r\nContent-Length: 0\r\n\r\n",
    "/missing": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "/broken": b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
    "/partial": b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhello",
    "/odd": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello",
    "/garbage": b"220 smtp.example.com\r\n\r\n",
    "/nothing": b"",
}
SLOW = {
    "/silent": b"",
    "/headers": b"H",
    "/body": b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nh",
}
"""What comes at once, and after it a byte now and then."""


def _serve(listener: socket.socket, over: threading.Event) -> None:
    while True:
        try:
            connected, _ = listener.accept()
        except OSError:
            return
        with connected:
            request = connected.recv(4096)
            path = request.split(b" ")[1].decode() if request else "/nothing"
            connected.sendall(ANSWERS.get(path, SLOW.get(path, b"")))
            if path in SLOW:
                _drip(connected, over, nothing=path == "/silent")


def _drip(connected: socket.socket, over: threading.Event, *, nothing: bool) -> None:
    try:
        while not over.wait(0.02):
            connected.sendall(b"" if nothing else b"T")
            if nothing and connected.recv(1) == b"":
                return
    except OSError:
        return


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=_serve, args=(listener, over), daemon=True)
        server.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
    server.join()


def test_what_is_there_is_fetched_with_its_headers(address: str) -> None:
    found = fetch(f"{address}/plain", seconds=60, most_bytes=100)
    assert found.body == b"hello"
    assert found.headers == {"cache-control": "max-age=60"}
    assert fetch(f"{address}/counted?a=1", seconds=60, most_bytes=100).body == b"hello"


@pytest.mark.parametrize(
    "path",
    [
        "/long",
        "/short",
        "/moved",
        "/missing",
        "/broken",
        "/partial",
        "/odd",
        "/garbage",
        "/nothing",
        "/a b",
    ],
)
def test_anything_but_a_whole_answer_within_the_limit_is_trouble(address: str, path: str) -> None:
    with pytest.raises(ProofUnavailableError, match="could not be fetched"):
        fetch(f"{address}{path}", seconds=60, most_bytes=100)


@pytest.mark.parametrize("path", sorted(SLOW))
def test_who_is_silent_or_slow_is_cut_off(address: str, path: str) -> None:
    """The other side takes longer than any test may."""
    with pytest.raises(ProofUnavailableError):
        fetch(f"{address}{path}", seconds=0.1, most_bytes=100_000)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "https://127.0.0.1:1/", "http:///x"])
def test_who_is_not_there_is_trouble(url: str) -> None:
    with pytest.raises(ProofUnavailableError):
        fetch(url, seconds=60, most_bytes=100)
