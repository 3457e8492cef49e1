"""Azure.  Where to read next: ``provider``, then ``launching``, ``listing`` and ``following``."""
