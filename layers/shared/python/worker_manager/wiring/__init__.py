"""Building what the functions work with, once per container; the only place that knows all.

Where to read next: ``base`` (what every function shares), then ``loops``, ``api`` or ``queue``: a
function loads only the one it needs.
"""
