"""The agent beside the machines: it asks a worker manager what is to be done, and does it.

A small program for a data centre.  It opens connections, and never takes one: over HTTPS it asks
for runs of actions, climbs a ladder of ways to reboot the machine (ssh, its controller, its power
outlet, a ticket), looks after each whether the machine went down and came up, and tells of all of
it.  It knows nothing of the rest of this project but the HTTP API.
Read next: ``service`` (what runs), ``climb`` (one run), ``ladder`` (which rung comes next),
``lease`` (what is told before anything is done), ``inventory`` (what is known of machines).
"""
