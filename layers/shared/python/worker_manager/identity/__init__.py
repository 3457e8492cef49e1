"""Proofs of identity: is a machine that registers the one that was launched?

One module per kind of proof: ``aws`` (signed identity documents), ``static`` (shared secrets).  No
cloud SDK here, and no state: the store sees to it that a proof counts once.
"""
