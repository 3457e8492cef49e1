"""Names and passwords that derive from an order."""

from __future__ import annotations

import re

import pytest

from worker_manager.providers.azure.naming import (
    PASSWORD_CLASSES,
    admin_password,
    machine_names,
    machine_of_disk,
)

NAMES = machine_names("o-1", 0, deployment="wm-test")
SECRET = b"a-secret"


def test_names_fit_into_what_azure_and_windows_allow() -> None:
    assert re.fullmatch(r"vm-[a-z0-9]{35}", NAMES.machine)
    assert re.fullmatch(r"[a-z][a-z0-9]{14}", NAMES.computer)
    assert re.fullmatch(r"[a-z][a-z0-9]{19}", NAMES.user)
    assert NAMES.disk(0) == f"disk-{NAMES.suffix}-os"
    assert NAMES.disk(2) == f"disk-{NAMES.suffix}-2"


def test_the_same_machine_has_the_same_names_and_no_other_has() -> None:
    again = machine_names("o-1", 0, deployment="wm-test")
    others = [machine_names(order, index, deployment="wm-test") for order, index in OTHERS]
    assert again == NAMES
    assert len({one.machine for one in (NAMES, *others)}) == 4
    assert len({one.computer for one in (NAMES, *others)}) == 4


OTHERS = [("o-1", 1), ("o-11", 0), ("o-2", 0)]


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        (NAMES.disk(0), NAMES.machine),
        (NAMES.disk(12).upper(), NAMES.machine),
        (machine_names("o-1", 0, deployment="wm-else").disk(0), None),
        ("disk-theirs-os", None),
        (f"disk-{NAMES.suffix}-x", None),
        (NAMES.machine, None),
    ],
)
def test_a_disk_tells_by_its_name_whose_it_is(name: str, machine: str | None) -> None:
    assert machine_of_disk(name, deployment="wm-test") == machine


def test_passwords_have_all_classes_of_characters_and_are_each_machines_own() -> None:
    passwords = [admin_password(SECRET, "o-1", index) for index in range(200)]
    assert len(set(passwords)) == 200
    for password in passwords:
        assert len(password) == 72
        assert all(set(password) & set(letters) for letters in PASSWORD_CLASSES)
    assert admin_password(SECRET, "o-1", 0) == passwords[0]


def test_nobody_derives_a_password_without_the_secret() -> None:
    assert admin_password(b"another", "o-1", 0) != admin_password(SECRET, "o-1", 0)
