"""Who was seen where: provisioners, worker types, worker groups and workers.

What the queue saw and what people declared are kept apart, and both in one table
(``store.registry_table``).  ``entities`` are the values, ``changes`` what an observation or a
person does to a worker, ``windows`` for how long something is shown; ``registry`` reads, decides
with these and writes.  ``backends`` are where sightings come from.
"""
