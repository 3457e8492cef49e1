"""Health of machines: how each fares, why, and what is done about it by itself.

Read in this order: ``facts`` (what is known), ``verdicts`` (the rules), ``breaker`` and
``remedies`` (what may be done), ``policy`` (what owners of a pool say of it all).
"""
