"""Texts too large for a message, in S3 for a day."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from worker_manager.core.errors import NotStoredError


class S3Blobs:
    """A bucket whose objects expire after a day."""

    def __init__(self, client: Any, bucket: str) -> None:
        """``client`` is a boto3 client for S3."""
        self._client = client
        self._bucket = bucket

    def put(self, key: str, text: str) -> None:
        """Store ``text`` under ``key``, over whatever was there.  Raises ``NotStoredError``."""
        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=text.encode())
        except (ClientError, BotoCoreError) as error:
            raise NotStoredError(f"{key}: {error}") from error

    def get(self, key: str) -> str | None:
        """The text under ``key``; ``None`` if it has vanished."""
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
        except self._client.exceptions.NoSuchKey:
            return None
        text: bytes = answer["Body"].read()
        return text.decode()
