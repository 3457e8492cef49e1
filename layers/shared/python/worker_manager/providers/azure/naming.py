"""Names of all that an order makes, and the secrets of its machines: derived, never stored.

The same order gives the same names, so that a repeated launch meets what the first one made.  The
last letters of a name are the deployment's mark, by which a disk tells whose it is even if Azure
gave it none of our tags.  Lengths are those of the reference and of Azure's "Naming rules and
restrictions for Azure resources".
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
SUFFIX_CHARS = 35
MARK_CHARS = 6
COMPUTER_NAME_CHARS = 15
"""The most that Windows takes."""
USER_NAME_CHARS = 20
PASSWORD_CHARS = 72
"""The most that Linux machines take."""
PASSWORD_CLASSES = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "-_")
"""One of each must be in a password; together they are 64, so a byte chooses evenly."""

_DISK = re.compile(rf"disk-([0-9a-z]{{{SUFFIX_CHARS}}})-(?:os|\d+)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MachineNames:
    """What one machine and all that belongs to it are called; ``suffix`` is common to all."""

    suffix: str
    computer: str
    user: str

    @property
    def machine(self) -> str:
        """The VM, which is also the worker's id."""
        return f"vm-{self.suffix}"

    @property
    def deployment(self) -> str:
        """The record of its template deployment."""
        return f"deploy-{self.suffix}"

    @property
    def nic(self) -> str:
        """Its network interface."""
        return f"nic-{self.suffix}"

    @property
    def ip(self) -> str:
        """Its public address, if it has one."""
        return f"pip-{self.suffix}"

    def disk(self, number: int) -> str:
        """Its disk of the operating system (0), or of data (1 and following)."""
        return f"disk-{self.suffix}-{number or 'os'}"


def machine_names(order_id: str, index: int, *, deployment: str) -> MachineNames:
    """Names for the machine number ``index`` of an order, unlike those of any other."""
    return MachineNames(
        suffix=_text("suffix", order_id, index)[: SUFFIX_CHARS - MARK_CHARS] + mark(deployment),
        computer="c" + _text("computer", order_id, index)[: COMPUTER_NAME_CHARS - 1],
        user="u" + _text("user", order_id, index)[: USER_NAME_CHARS - 1],
    )


def mark(deployment: str) -> str:
    """What the names of everything of a deployment end with."""
    return _text("mark", deployment)[:MARK_CHARS]


def machine_of_disk(name: str, *, deployment: str) -> str | None:
    """The machine that a disk of this name was made for; ``None`` if no one of ours."""
    found = _DISK.fullmatch(name)
    if found is None or not found[1].lower().endswith(mark(deployment)):
        return None
    return f"vm-{found[1].lower()}"


def admin_password(secret: bytes, order_id: str, index: int) -> str:
    """A password that nobody without ``secret`` can derive, with all four classes of characters."""
    everything = "".join(PASSWORD_CLASSES)
    stream = b"".join(
        hmac.digest(secret, f"{order_id}\0{index}\0{part}".encode(), "sha512") for part in range(2)
    )
    chosen = [
        letters[byte % len(letters)]
        for letters, byte in zip(PASSWORD_CLASSES, stream, strict=False)
    ]
    chosen += [everything[byte % len(everything)] for byte in stream[len(chosen) : PASSWORD_CHARS]]
    return "".join(chosen)


def _text(*parts: object) -> str:
    """Some fifty letters and digits that are always the same for the same parts."""
    raw = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    number, letters = int.from_bytes(raw, "big"), []
    while number:
        number, digit = divmod(number, len(LETTERS))
        letters.append(LETTERS[digit])
    return "".join(letters)
