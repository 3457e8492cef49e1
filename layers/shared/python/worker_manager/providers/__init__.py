"""Clouds behind one protocol (``protocol``), imported lazily: one cloud's SDK a function."""
