"""Amazon EC2.  Where to read next: ``provider``, then ``launch``, ``listing`` and ``by_id``."""
