"""Pools of build and test machines, right-sized.  Start reading at ``reconcile.provision``."""
