"""What moto does the long way round, done shorter; what it answers stays the same.

Most of the time of all tests together is spent in its tables.  ``hurry`` shortens the way there and
back, and what they do over and over for nothing.  Whatever goes wrong on the short way is asked
once more on the long one, so that errors are moto's own.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from botocore.auth import SigV4Auth
from botocore.hooks import EventAliaser
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.utils import camelcase_to_underscores, method_names_from_class
from moto.dynamodb.exceptions import ItemSizeTooLarge
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import Table
from moto.dynamodb.models.utilities import bytesize
from moto.dynamodb.responses import DynamoHandler

from tests.quick_expressions import read_expressions_once
from tests.quick_queries import look_into_one_partition

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from botocore.awsrequest import AWSPreparedRequest, AWSRequest

_ENDPOINT = re.compile(r"https://dynamodb\.([a-z0-9-]+)\.amazonaws\.com/")
_SHORT = frozenset(
    {
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    }
)
_MOST_BYTES = 405_000
"""Of an item, as moto counts them."""


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Do all of it."""
    ask_tables_directly(patch)
    sign_no_requests(patch)
    name_events_once(patch)
    keep_back_what_is_written(patch)
    read_expressions_once(patch)
    build_items_at_once(patch)
    copy_no_results(patch)
    look_into_one_partition(patch)
    patch.setattr("moto.core.responses.method_names_from_class", cache(method_names_from_class))


def ask_tables_directly(patch: pytest.MonkeyPatch) -> None:
    """It makes an HTTP request of ours, and reads and writes JSON by the book of all services."""
    slow = BotocoreStubber.process_request

    def process(self: BotocoreStubber, request: AWSPreparedRequest) -> Any:
        where = _ENDPOINT.match(request.url)
        action = _text(request.headers.get("X-Amz-Target", "")).partition(".")[2]
        if where is None or action not in _SHORT:
            return slow(self, request)
        try:
            body = json.dumps(_ask(where[1], action, cast("bytes", request.body)), default=_encoded)
        except Exception:
            return slow(self, request)
        return 200, {"content-type": "application/x-amz-json-1.0"}, body

    patch.setattr(BotocoreStubber, "process_request", process)


def _ask(region: str, action: str, body: bytes | str) -> Any:
    handler = DynamoHandler()
    handler.region = region
    handler.current_account = DEFAULT_ACCOUNT_ID
    handler.uri_match = {}
    handler.params = handler.body = json.loads(body)
    return getattr(handler, camelcase_to_underscores(action))().result


def _text(header: bytes | str) -> str:
    return header.decode() if isinstance(header, bytes) else header


def _encoded(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value)} is no JSON")


def sign_no_requests(patch: pytest.MonkeyPatch) -> None:
    """Nobody reads the signatures, but for an emulator's that stands elsewhere."""
    slow = SigV4Auth.add_auth

    def add_auth(self: SigV4Auth, request: AWSRequest) -> None:
        is_tables = self._service_name == "dynamodb"  # type: ignore[attr-defined]
        if not is_tables or not _ENDPOINT.match(request.url or ""):
            slow(self, request)

    patch.setattr(SigV4Auth, "add_auth", add_auth)


def name_events_once(patch: pytest.MonkeyPatch) -> None:
    """Sessions and clients are many; each looks for the older names of the same events."""
    slow = EventAliaser._alias_event_name  # type: ignore[attr-defined]
    known: dict[str, str] = {}

    def alias(self: EventAliaser, name: str) -> str:
        if name not in known:
            known[name] = slow(self, name)
        return known[name]

    patch.setattr(EventAliaser, "_alias_event_name", alias)


def keep_back_what_is_written(patch: pytest.MonkeyPatch) -> None:
    """It copies whole tables for each transaction that might fail; the items in it suffice."""
    slow = DynamoDBBackend.transact_write_items

    def transact(self: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        undo = [_undo(self, operation) for item in transact_items for operation in item.values()]
        try:
            slow(self, transact_items)
        except Exception:
            for step in undo:
                step()
            raise

    patch.setattr(DynamoDBBackend, "transact_write_items", transact)
    # Items are copied for streams, which no table has.
    patch.setattr("moto.dynamodb.models.copy", SimpleNamespace(deepcopy=_all_but(Table, Item)))


def _undo(backend: DynamoDBBackend, operation: dict[str, Any]) -> Callable[[], object]:
    """What puts the one item that is written back to how it is now."""
    table = backend.get_table(operation["TableName"])
    hash_key, range_key = backend.get_keys_value(table, operation.get("Key") or operation["Item"])
    before = copy.deepcopy(table.get_item(hash_key, range_key))
    if before is None:
        return lambda: table.delete_item(hash_key, range_key)
    return lambda: table.items[hash_key].__setitem__(range_key, before)


def copy_no_results(patch: pytest.MonkeyPatch) -> None:
    """It copies the items that a query finds, and copies them again as it answers."""
    quick = SimpleNamespace(copy=copy.copy, deepcopy=_all_but(list, Item))
    patch.setattr("moto.dynamodb.models.table.copy", quick)


def _all_but(*kept: type) -> Callable[[Any], Any]:
    def deepcopy(value: Any) -> Any:
        return value if isinstance(value, kept) else copy.deepcopy(value)

    return deepcopy


def build_items_at_once(patch: pytest.MonkeyPatch) -> None:
    """It weighs an item anew for each attribute, and projects it through JSON and back."""
    slow = Item.project

    def build(
        self: Item, hash_key: DynamoType, range_key: DynamoType | None, attrs: dict[str, Any]
    ) -> None:
        found = {key: DynamoType(value) for key, value in attrs.items()}
        if sum(bytesize(key) + value.size() for key, value in found.items()) > _MOST_BYTES:
            raise ItemSizeTooLarge
        self.hash_key, self.range_key, self.attrs = hash_key, range_key, LimitedSizeDict()
        dict.update(self.attrs, found)

    def project(self: Item, paths: list[list[str]]) -> Item:
        if any(len(path) > 1 or "[" in path[0] for path in paths):
            return slow(self, paths)
        names = {path[0] for path in paths}
        found = copy.copy(self)
        found.attrs = LimitedSizeDict()
        dict.update(found.attrs, {key: self.attrs[key] for key in self.attrs if key in names})
        return found

    patch.setattr(Item, "__init__", build)
    patch.setattr(Item, "project", project)
