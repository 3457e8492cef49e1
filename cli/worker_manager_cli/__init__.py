"""The command ``worker-manager``: what is known of workers, asked for at a terminal.

It talks to a deployment as any other client does, and imports nothing of the service.
Where to read next: ``main``.
"""
