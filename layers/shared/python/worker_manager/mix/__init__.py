"""How machines that stay are best shared out among task queues.

Where to read next: ``load`` (what is kept of the past), ``recommender`` (what follows from it).
"""
