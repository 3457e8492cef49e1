"""Pools of build and test machines, right-sized.  Start reading at ``reconcile.provision``."""

__version__ = "0.1.0"
