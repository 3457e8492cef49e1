"""Secrets and large texts, from their services."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from worker_manager.blobs import S3Blobs
from worker_manager.core.errors import MalformedSecretError, NotStoredError
from worker_manager.providers.aws.setup import AccessKey, access_key
from worker_manager.secrets import Login, login, read_secret


@mock_aws
def test_a_secret_is_read_by_name_or_arn() -> None:
    client = boto3.client("secretsmanager")
    made = client.create_secret(Name="wm-auth", SecretString="the text")
    assert read_secret(client, "wm-auth") == read_secret(client, made["ARN"]) == "the text"


@mock_aws
def test_a_secret_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        read_secret(boto3.client("secretsmanager"), "wm-auth")


def test_an_access_key_is_read_and_never_printed() -> None:
    key = access_key('{"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "top secret"}')
    assert key == AccessKey("AKIDEXAMPLE", "top secret")
    assert "top secret" not in repr(key)


@pytest.mark.parametrize("text", ["", "generated-by-aws", "{}", "[]", "7", '{"password": "x"}'])
def test_any_other_text_is_no_access_key(text: str) -> None:
    assert access_key(text) is None


def test_half_an_access_key_is_refused_by_name() -> None:
    with pytest.raises(MalformedSecretError, match="secretAccessKey"):
        access_key('{"accessKeyId": "AKIDEXAMPLE"}')


def test_a_login_is_read_and_its_password_never_printed() -> None:
    known = login('{"username": "wm", "password": "top secret"}')
    assert known == Login("wm", "top secret")
    assert "top secret" not in repr(known)


@pytest.mark.parametrize("text", ["", "generated-by-aws", "[]", '{"username": "wm"}'])
def test_any_other_text_is_no_login(text: str) -> None:
    with pytest.raises(ValueError, match="username and password"):
        login(text)


@mock_aws
def test_a_blob_comes_back_as_it_was_put_and_the_last_one_counts() -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket="sightings")
    blobs = S3Blobs(client, "sightings")

    blobs.put("scan/a.json", "first")
    blobs.put("scan/a.json", "zweitens: ü")

    assert blobs.get("scan/a.json") == "zweitens: ü"
    assert blobs.get("scan/b.json") is None


@mock_aws
def test_a_text_that_could_not_be_stored_is_told_as_that() -> None:
    with pytest.raises(NotStoredError, match=r"scan/a\.json"):
        S3Blobs(boto3.client("s3"), "nowhere").put("scan/a.json", "text")


@mock_aws
def test_a_bucket_that_is_not_there_is_no_vanished_blob() -> None:
    with pytest.raises(ClientError, match="NoSuchBucket"):
        S3Blobs(boto3.client("s3"), "nowhere").get("scan/a.json")
