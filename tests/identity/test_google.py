from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from tests.factories import NOW, a_worker
from tests.google_signer import (
    AUDIENCE,
    FOREIGN,
    INSTANCE,
    PROJECT,
    PUBLISHED,
    SERVICE_ACCOUNT,
    ZONE,
    Published,
    a_token,
    claims,
)
from worker_manager.core.errors import ProofError, ProofUnavailableError
from worker_manager.core.model import State, Worker, WorkerKey
from worker_manager.identity.downloads import Downloaded
from worker_manager.identity.google import verify_token
from worker_manager.identity.google_keys import GoogleKeys

WORKER = a_worker(INSTANCE, group=ZONE, state=State.REQUESTED)
ISSUED = claims()["iat"]


def check(
    token: object,
    *,
    worker: Worker = WORKER,
    keys: GoogleKeys | None = None,
    after: timedelta = timedelta(0),
) -> None:
    verify_token(
        {"token": token},
        worker,
        project=PROJECT,
        audience=AUDIENCE,
        service_account_id=SERVICE_ACCOUNT,
        keys=keys or Published().keys(),
        now=NOW + after,
    )


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def a_forged_token(algorithm: str, secret: bytes | None) -> str:
    """One whose header says how it wants to be checked."""
    signed = f"{encoded({'alg': algorithm, 'kid': 'kid-1', 'typ': 'JWT'})}.{encoded(claims())}"
    if secret is None:
        return f"{signed}."
    digest = hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def a_tampered_token() -> str:
    header, _, signature = a_token(claims({"instance_id": "1"})).split(".")
    return f"{header}.{encoded(claims())}.{signature}"


@pytest.mark.parametrize(
    ("said", "after"),
    [
        (claims(), 0),
        (claims(iss="accounts.google.com"), 0),
        (claims(), -60),
        (claims(), 3660),
        (claims(exp=ISSUED + 3600.5), 3600),
    ],
)
def test_the_token_of_the_worker_itself_is_accepted(said: dict[str, Any], after: int) -> None:
    check(a_token(said), after=timedelta(seconds=after))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (claims(aud="https://elsewhere.example.com"), "[Aa]udience"),
        (claims(aud=f"{AUDIENCE}/"), "[Aa]udience"),
        (claims(aud=None), "aud"),
        (claims(iss="https://accounts.example.com"), "issuer"),
        (claims(iss=""), "[Ii]ssuer"),
        (claims(sub="104000000000000000002"), "service account"),
        (claims(sub=None), "does not hold|service account"),
        (claims(exp=None), "until when"),
        (claims(exp="soon"), "until when"),
        (claims(iat=None), "when it was made"),
        (claims(iat=True), "when it was made"),
        (claims(exp=float("nan")), "expired"),
        (claims(exp=ISSUED - 61), "expired"),
        (claims(iat=ISSUED + 61), "future"),
        (claims(full=False), "names no instance"),
        (claims(google={}), "names no instance"),
        (claims(google="x"), "names no instance"),
        (claims({"instance_id": "1"}), "instance_id differ"),
        (claims({"instance_id": int(INSTANCE)}), "instance_id differ"),
        (claims({"project_id": "other"}), "project_id differ"),
        (claims({"zone": "us-central1-b"}), "zone differ"),
        (claims({"zone": None}), "zone differ"),
    ],
)
def test_a_token_that_google_made_for_something_else_is_refused(
    said: dict[str, Any], why: str
) -> None:
    with pytest.raises(ProofError, match=why):
        check(a_token(said))


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (None, "must be text"),
        ("", "must be text"),
        (["x"], "must be text"),
        ("x" * 16_385, "must be text"),
        ("x", "does not hold"),
        ("a.b.c", "does not hold"),
        ("\ud800.x.y", "does not hold"),
        (a_tampered_token(), "does not hold"),
        (a_token(key=FOREIGN), "does not hold"),
        (a_token(algorithm="RS512"), "not signed by RS256"),
        (a_token(kid=None), "named key"),
        (a_token(kid="kid-9"), "does not publish"),
        (a_forged_token("none", None), "not signed by RS256"),
        (a_forged_token("HS256", PUBLISHED["kid-1"].encode()), "not signed by RS256"),
        (a_forged_token("RS256", PUBLISHED["kid-1"].encode()), "does not hold"),
        (f"{encoded({'alg': 'RS256', 'kid': 'kid-1'})}.{'[' * 5000}.x", "does not hold"),
    ],
    ids=count(),
)
def test_what_google_did_not_sign_is_refused(token: object, why: str) -> None:
    with pytest.raises(ProofError, match=why):
        check(token)


def test_the_token_of_another_instance_or_zone_is_refused() -> None:
    for group, worker_id in ((ZONE, "1"), ("us-central1-b", INSTANCE)):
        other = replace(WORKER, key=WorkerKey(WORKER.key.pool_id, group, worker_id))
        with pytest.raises(ProofError, match="another instance"):
            check(a_token(), worker=other)


class TestGooglesKeys:
    @pytest.mark.parametrize(
        ("said", "fresh", "old"),
        [
            ("public, max-age=3600", 3599, 3600),
            ("private,MAX-AGE=7200", 7199, 7200),
            ("max-age=10", 299, 300),
            ("max-age=999999999", 86_399, 86_400),
            ("s-maxage=9000", 299, 300),
            ("no-store", 299, 300),
        ],
    )
    def test_are_asked_for_once_and_again_when_they_are_old(
        self, said: str, fresh: int, old: int
    ) -> None:
        google = Published(headers={"cache-control": said})
        keys = google.keys()
        for seconds, asked in ((0, 1), (fresh, 1), (old, 2)):
            keys.key("kid-1", now=NOW + timedelta(seconds=seconds))
            assert google.asked == asked

    def test_that_are_new_are_asked_for_at_most_once_a_minute(self) -> None:
        google = Published()
        keys = google.keys()
        keys.key("kid-1", now=NOW)
        google.certificates = dict(PUBLISHED)
        with pytest.raises(ProofError):
            keys.key("kid-2", now=NOW + timedelta(seconds=59))
        assert google.asked == 1
        keys.key("kid-2", now=NOW + timedelta(seconds=60))
        assert google.asked == 2

    def test_that_cannot_be_had_are_no_refusal(self) -> None:
        """B30: taskcluster PR#7673."""
        google = Published(fails=True)
        keys = google.keys()
        for seconds, asked in ((0, 1), (4, 1), (5, 2)):
            with pytest.raises(ProofUnavailableError):
                check(a_token(), keys=keys, after=timedelta(seconds=seconds))
            assert google.asked == asked
        google.fails = False
        check(a_token(), keys=keys, after=timedelta(seconds=10))

    def test_that_are_old_serve_a_day_longer_if_no_new_ones_can_be_had(self) -> None:
        google = Published()
        keys = google.keys()
        keys.key("kid-1", now=NOW)
        google.fails = True
        keys.key("kid-1", now=NOW + timedelta(hours=24, minutes=59))
        with pytest.raises(ProofUnavailableError):
            keys.key("kid-2", now=NOW + timedelta(hours=24, minutes=59))
        with pytest.raises(ProofUnavailableError):
            keys.key("kid-1", now=NOW + timedelta(hours=25))

    def test_that_google_withdrew_do_not_serve(self) -> None:
        google = Published()
        keys = google.keys()
        keys.key("kid-1", now=NOW)
        google.certificates = {"kid-2": PUBLISHED["kid-2"]}
        with pytest.raises(ProofError):
            keys.key("kid-1", now=NOW + timedelta(hours=1))

    @pytest.mark.parametrize(
        "body", [b"", b"<html>", b"[]", b'{"kid-1": 1}', b'{"kid-1": "x"}', b"\xff"]
    )
    def test_that_cannot_be_read_are_as_none(self, body: bytes) -> None:
        with pytest.raises(ProofUnavailableError):
            check(a_token(), keys=GoogleKeys(fetching=lambda _: Downloaded(body)))
