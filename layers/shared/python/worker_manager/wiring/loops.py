"""Building what the loops and the scheduled functions work with, once per container.

A provider that cannot start is said to fail, and its functions leave their messages to the next
tick; each call tries to build it again.  So it is once a minute where its credentials are refused:
they may have been changed since they were read.
Where to read next: ``base`` (what every function shares), ``reconcile.deps``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cache, wraps
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from botocore.exceptions import ClientError

from worker_manager import settings as settings_module
from worker_manager.blobs import S3Blobs
from worker_manager.core.errors import MalformedSecretError, ProviderNotReadyError
from worker_manager.mail import ONE_ATTEMPT, SesMailer
from worker_manager.providers.protocol import Setup
from worker_manager.providers.registry import CLOUDS, load_cloud
from worker_manager.reconcile.deps import Deps, Ledger
from worker_manager.reconcile.expire import Keeper
from worker_manager.reconcile.mailing import Post
from worker_manager.reconcile.provider_status import provider_failed, provider_recovered
from worker_manager.settings import TABLE_VARIABLES, MissingSettingError
from worker_manager.store.mail import MailStore
from worker_manager.store.provider_status import Activity
from worker_manager.telemetry import logger
from worker_manager.wiring.base import Base, later, not_given, now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.providers.protocol import CloudProvider
    from worker_manager.settings import ProviderSettings, Settings

REBUILT = timedelta(minutes=1)
"""How often a provider is built anew at most, while it fails at what it is asked."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Loop(Base):
    """What a function of one provider's loop works with."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._made: Deps | None = None
        self._built: datetime | None = None

    def current(self) -> Deps:
        """Everything that this function was given, with a provider that is worth a try.

        Raises ``ProviderNotReadyError`` while it cannot be built.
        """
        if self._made is None:
            self._made = self.deps()
        elif self._fails(self._made.provider_id):
            self._made = replace(self._made, provider=self._cloud(self._made))
        return self._made

    def _fails(self, provider_id: str) -> bool:
        """Whether this container saw its provider fail, some time after it was built."""
        if self._built is None or now() - self._built < REBUILT:
            return False
        return self.stores.statuses.is_failing_here(provider_id)

    def deps(self) -> Deps:
        """Everything that this function was given, made anew."""
        without = Deps(
            provider_id=self.settings.provider.provider_id,
            stores=self.stores,
            outbox=self.outbox if self.has("WM_BUS") else not_given("WM_BUS"),
            provider=not_given("WM_CLOUD_SECRET"),
            queue=self.queue(),
            senders=self.senders(),
            clock=now,
            timing=self.timing,
            inputs={
                "rootUrl": self.settings.root_url,
                "deployment": self.settings.deployment,
            },
            planners=frozenset(
                name
                for name, given in self.settings.providers.items()
                if given.provider_type in CLOUDS
            ),
            blobs=(
                S3Blobs(self.client("s3"), self.settings.required("WM_BUCKET"))
                if self.has("WM_BUCKET")
                else None
            ),
            ledger=self._ledger(),
        )
        return replace(without, provider=self._cloud(without))

    def _ledger(self) -> Ledger | None:
        """The runs of actions, where the function was given them."""
        if not self.has(TABLE_VARIABLES["actions"]):
            return None
        # One of the functions needs them, and it seldom.
        from worker_manager.wiring.actions import new_lease_id, runs_of  # noqa: PLC0415
        from worker_manager.wiring.backends import registry_of  # noqa: PLC0415

        return Ledger(later(lambda: runs_of(self, registry_of(self))), new_lease_id)

    def _cloud(self, deps: Deps) -> CloudProvider:
        """The provider, built anew; what stands in for it where the function was given none."""
        if not self.has("WM_CLOUD_SECRET"):
            return deps.provider
        try:
            cloud = self._start(self.settings.provider, self.settings.deployment)
        except MissingSettingError:
            raise
        except Exception as error:
            failure = error
        else:
            provider_recovered(deps, Activity.SETUP)
            self._built = now()
            return cloud
        # Its words may quote the secret: what is raised and logged from here on must not know it.
        frames = [f"{frame.filename}:{frame.lineno}" for frame in extract_tb(failure.__traceback__)]
        logger.warning("a provider was not built", provider=deps.provider_id, frames=frames)
        not_ready = ProviderNotReadyError(reason_of(failure))
        provider_failed(deps, Activity.SETUP, not_ready)
        raise not_ready

    def _start(self, provider: ProviderSettings, deployment: str) -> CloudProvider:
        return load_cloud(provider.provider_type)(
            Setup(
                provider_id=provider.provider_id,
                deployment=deployment,
                options=provider.options,
                secret=lambda: self.secret("WM_CLOUD_SECRET"),
                endpoint=self.settings.cloud_endpoint,
                session=self.boto,
            )
        )


def reason_of(error: Exception) -> str:
    """Why a provider cannot start, for everybody to see.

    Only messages that are known to quote no secret are shown; of others, what kind they are.
    """
    if isinstance(error, MalformedSecretError):
        return str(error)
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code")
        return f"AWS refused {error.operation_name}: {code}"
    return f"{type(error).__name__} when it was built; our log says where"


@cache
def provider_loop() -> Loop:
    """The container's loop, whether or not its provider could be built."""
    return Loop(settings_module.load())


def loop() -> Deps:
    """For every function of a provider's loop; see ``Loop.current``."""
    return provider_loop().current()


def when_ready(handle: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """A handler that leaves its event be while its provider cannot start.

    Its messages count as done: the next tick says the same, and the next scan deletes again.
    """

    @wraps(handle)
    def handle_when_ready(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        try:
            return handle(*args, **kwargs)
        except ProviderNotReadyError as error:
            logger.info("left to the next tick, for the provider cannot start", reason=str(error))
            return None

    return handle_when_ready


@cache
def keeper(*, mails: bool = False) -> Keeper:
    """For the scheduled functions that belong to no provider; ``mails`` for the one that may."""
    base = Base(settings_module.load())
    providers = base.settings.providers
    return Keeper(
        stores=base.stores,
        outbox=base.outbox,
        clock=now,
        timing=base.timing,
        providers=sorted(providers),
        static=frozenset(
            name for name, given in providers.items() if given.provider_type not in CLOUDS
        ),
        post=_post(base) if mails else None,
    )


def _post(base: Base) -> Post | None:
    """What mail is sent with; ``None`` if the stage sends none."""
    sender = base.settings.mail_from
    if sender is None:
        return None
    make: Any = base.boto.client
    return Post(
        mailer=SesMailer(make("sesv2", config=ONE_ATTEMPT), sender),
        store=MailStore(base.tables),
        root_url=base.settings.root_url,
    )
