"""Sending e-mail over SES."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from worker_manager.core.errors import MailRefusedError

if TYPE_CHECKING:
    from worker_manager.core.letters import Letter

ONE_ATTEMPT = Config(connect_timeout=3, read_timeout=7, retries={"total_max_attempts": 1})
"""SES knows no token by which a repeat is the same mail, so that the SDK must not repeat."""

THROTTLED = frozenset(
    {
        "AccountSuspendedException",
        "LimitExceededException",
        "SendingPausedException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Codes that say: nothing from you now, whoever it is for."""

_ONE_ADDRESS = re.compile(r"[^\s,;:<>()\[\]\"@\x00-\x1f\x7f]+@[A-Za-z0-9.-]+", re.ASCII)


class Mailer(Protocol):
    """Where letters go."""

    def send(self, letter: Letter) -> None:
        """Send it; raises ``MailRefusedError`` if it was not taken, as far as we know."""
        ...


class SesMailer:
    """Amazon SES; each letter from one address to one other."""

    def __init__(self, client: Any, sender: str) -> None:
        """``client`` is a boto3 client for SES v2, made with ``ONE_ATTEMPT``."""
        self._client = client
        self._sender = sender

    def send(self, letter: Letter) -> None:
        """Send as plain text; a list of addresses or a display name is refused."""
        if not _ONE_ADDRESS.fullmatch(letter.to):
            raise MailRefusedError("that is no e-mail address", code="InvalidAddress")
        try:
            self._client.send_email(
                FromEmailAddress=self._sender,
                Destination={"ToAddresses": [letter.to]},
                Content={
                    "Simple": {
                        "Subject": {"Data": letter.subject, "Charset": "UTF-8"},
                        "Body": {"Text": {"Data": letter.text, "Charset": "UTF-8"}},
                        "Headers": [{"Name": "Auto-Submitted", "Value": "auto-generated"}],
                    }
                },
            )
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code") or "unknown")
            raise MailRefusedError(str(error), code=code, throttled=code in THROTTLED) from error
        except BotoCoreError as error:
            raise MailRefusedError(str(error), code=type(error).__name__) from error
