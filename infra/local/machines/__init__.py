"""Simulated machines: what runs on the instances of a simulated cloud.

Each boots, reads its user data, proves who it is, registers, claims and finishes tasks, and leaves
when it is told to, through the stock Taskcluster client; or misbehaves, where a rule says so.
Reading order: ``fleet`` (who watches the cloud), ``machine`` (one life), ``worker`` (its work),
``behaviour`` (what may be set).
"""

from infra.local.machines.behaviour import Behaviour, Rule, Rules
from infra.local.machines.fleet import MachineFleet

__all__ = ["Behaviour", "MachineFleet", "Rule", "Rules"]
