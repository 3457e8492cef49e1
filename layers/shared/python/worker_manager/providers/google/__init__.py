"""Google Compute Engine.  Where to read next: ``provider``, then ``launch`` and ``listing``."""
