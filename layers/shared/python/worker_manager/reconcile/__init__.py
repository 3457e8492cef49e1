"""Observe, plan, act, record: what the scheduled functions do.  Start at ``provision``."""
