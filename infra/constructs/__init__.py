"""The parts of the stack: ``function`` (all of them), ``provider_loop``, ``tables``, ``api``."""
