"""Ports for servers that must be told theirs."""

from __future__ import annotations

import socket


def free_port(host: str) -> int:
    """A UDP port that nobody has right now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
