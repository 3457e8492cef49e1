"""What can go wrong, as the rest of the agent tells it apart.

``AgentError``: all of them
├── ``ConfigError``: a file says what makes no sense, or a secret can be read by others
├── ``NotDoneError``: a rung was not done, for certain
├── ``LeaseLostError``: the run is somebody else's, or over: stop at once
└── ``ApiError``: the worker manager refused a request, or could not be asked
"""

from __future__ import annotations


class AgentError(Exception):
    """What the agent itself raises."""


class ConfigError(AgentError):
    """What files say cannot be used; the text names the file, the host and the field."""


class NotDoneError(AgentError):
    """A rung was not done: what it would have asked for was never asked, or was refused.

    Any other error of a rung leaves open whether it was done.
    """


class LeaseLostError(AgentError):
    """Nothing more may be done: the run is over, or somebody else has it."""


class ApiError(AgentError):
    """The worker manager refused a request, or did not answer in time."""
