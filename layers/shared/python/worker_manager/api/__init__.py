"""The HTTP API, wire-compatible with Taskcluster's worker-manager.

A request goes through ``app`` (who, whether, in what shape) to one handler; ``routes`` lists those
of the worker manager, ``queue`` those of the embedded queue.  ``schemas`` are the bodies; one
module per resource has its routes and their handlers.
"""
