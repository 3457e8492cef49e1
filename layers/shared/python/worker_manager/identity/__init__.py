"""Proofs of identity: is a machine that registers the one that was launched?

One module per kind of proof: ``aws``, ``google`` and ``azure`` (signed by the cloud), ``static``
(shared secrets).  No cloud SDK here.  Which proof counted already is the store's to know; all that
is remembered here are public certificates.
"""
