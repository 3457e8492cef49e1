"""Machines in racks, simulated on loopback: what an agent beside them talks to, in real protocols.

Each has an ssh server, a controller over IPMI and over Redfish, and an outlet over SNMP; all act
on one ``machine`` that goes down and comes up.  ``rack`` puts them together and writes the files
that an agent needs.  Read next: ``rack``.
"""
