"""The embedded task queue: just enough of Taskcluster's for a stage without a real one.

``embedded`` has its calls, over ``ledger``, which reads and writes the table
``store.queue_table``; who called is in the ``registry``, which each claim is written in one with
(``claimer``).  What may happen is decided without them: ``tasks`` says what a task may do next,
``requests`` what may be asked.
"""
