"""The embedded task queue: just enough of Taskcluster's for a stage without a real one.

``embedded`` has its calls, over ``ledger`` (tasks), ``lists`` (what waits and what is worked on)
and ``sightings`` (workers), which read and write the table ``store.queue_table``.  What may happen
is decided without it: ``tasks`` says what a task may do next, ``workers`` what is remembered of
who called, ``requests`` what may be asked.
"""
