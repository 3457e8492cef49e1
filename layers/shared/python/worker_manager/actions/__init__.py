"""What can be done with workers besides giving them tasks: reboot, kill, quarantine, and more.

Read next: ``entities`` (the values), ``declared`` (what may be done where), ``course`` (what
becomes of a run), ``ledger`` (runs as they are kept).
"""
