"""What can go wrong, in our words: each border maps its foreign errors to these.

::

    WorkerManagerError
    ├── CloudError                    raised by providers; ``kind`` becomes the pool error's kind
    │   ├── OutOfCapacityError        this place has none of these machines now
    │   ├── QuotaExceededError        our account may not have more
    │   ├── InvalidLaunchConfigError  the cloud will never accept this launch config
    │   ├── ThrottledError            asked too fast; says how long to wait
    │   │   ├── NoRoomError           one place of the cloud is full for now; others are not
    │   │   └── NotBegunError         our own time was over before it was asked
    │   ├── CloudUnavailableError     its fault, or unknown; try again
    │   │   └── NotReachedError       nothing was sent, so nothing was done
    │   ├── NotAuthorizedError        we may not do this
    │   │   └── BadCredentialsError   our credentials do not hold at all
    │   └── MachineGoneError          the machine that it was about exists no more
    ├── ConflictError                 somebody else changed it first
    ├── DuplicateError                it exists already, with other content
    ├── NotFoundError                 it does not exist
    ├── InputInvalidError             the caller gave something wrong; names the field
    ├── NotStoredError                a text could not be stored beside its message
    ├── QueueUnavailableError         the task queue did not answer
    ├── MailRefusedError              an e-mail was not taken
    ├── MalformedSecretError          a secret is not what it must be
    ├── ProviderNotReadyError         a provider's code or secret does not let it start
    ├── AuthenticationFailedError     a caller's signature or certificate does not hold
    ├── ProofError                    a machine could not prove who it is
    └── ProofUnavailableError         a proof could not be checked; worth a retry
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar


class WorkerManagerError(Exception):
    """Root of everything this library raises on purpose."""


class CloudError(WorkerManagerError):
    """A cloud refused or failed.  ``code`` is the cloud's own word for it."""

    kind: ClassVar[str] = "cloud-error"

    def __init__(self, message: str, *, code: str = "unknown") -> None:
        super().__init__(message)
        self.code = code


class OutOfCapacityError(CloudError):
    """The location has none of these machines now; another one may."""

    kind = "no-capacity"


class QuotaExceededError(CloudError):
    """Our account may not have more of these until it has fewer."""

    kind = "quota-exceeded"


class InvalidLaunchConfigError(CloudError):
    """The cloud will not accept this launch config, however often it is asked."""

    kind = "invalid-launch-config"


class ThrottledError(CloudError):
    """We asked too fast; nothing was done.  No launch config is to blame.

    ``is_doubtful`` where it stands for several calls, another of which may have acted.
    """

    kind = "throttled"
    waits_alone: ClassVar[bool] = False
    """Whether it says nothing about others at the same location."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "unknown",
        retry_after: timedelta = timedelta(seconds=5),
        is_doubtful: bool = False,
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after
        self.is_doubtful = is_doubtful

    def in_doubt(self) -> ThrottledError:
        """The same wait, for calls of which one may have acted."""
        return type(self)(str(self), code=self.code, retry_after=self.retry_after, is_doubtful=True)


class NoRoomError(ThrottledError):
    """What pools share at one place of the cloud is full for now; nothing was done."""

    waits_alone = True


class NotBegunError(ThrottledError):
    """Our own time was over before it could be asked; nothing was done."""

    waits_alone = True


class CloudUnavailableError(CloudError):
    """The cloud failed or did not answer; whether it acted is unknown."""

    kind = "cloud-unavailable"


class NotReachedError(CloudUnavailableError):
    """No connection came about, as where a location does not exist: nothing was sent or done."""


class NotAuthorizedError(CloudError):
    """The provider's credentials do not allow this; others may be allowed."""

    kind = "not-authorized"


class BadCredentialsError(NotAuthorizedError):
    """The provider's credentials do not hold; the provider as a whole is affected."""


class MachineGoneError(CloudError):
    """The machine that something was to be done to exists no more; nothing was done."""

    kind = "machine-gone"


class ConflictError(WorkerManagerError):
    """Somebody else changed the item first; read it again."""


class DuplicateError(WorkerManagerError):
    """It exists already, with other content."""


class NotFoundError(WorkerManagerError):
    """It does not exist."""


class InputInvalidError(WorkerManagerError):
    """The caller gave something wrong: ``field`` names where, in the caller's own words."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class NotStoredError(WorkerManagerError):
    """A text too large for its message could not be stored; the message is not sent."""


class QueueUnavailableError(WorkerManagerError):
    """The task queue did not answer; its facts are unknown, which is not zero."""


class MailRefusedError(WorkerManagerError):
    """An e-mail was not taken; ``code`` is the mail service's own word for why.

    ``throttled`` if it takes none from us now, whoever it is for.
    """

    def __init__(self, message: str, *, code: str, throttled: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.throttled = throttled


class MalformedSecretError(WorkerManagerError):
    """A secret is not what it must be; the message says what is missing, and quotes nothing."""


class ProviderNotReadyError(WorkerManagerError):
    """A provider cannot start; the message is its reason, for everybody to see."""

    kind: ClassVar[str] = "setup-failed"


class AuthenticationFailedError(WorkerManagerError):
    """A caller's signature or certificate does not hold.  The message is meant for the caller."""


class ProofError(WorkerManagerError):
    """A machine could not prove who it is.  The message is for our log, never for the caller."""


class ProofUnavailableError(WorkerManagerError):
    """A proof could not be checked for a reason of ours or of the cloud; worth a retry."""
