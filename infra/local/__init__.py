"""The deployed system on one machine.  Start at ``stage`` (what runs) or ``runner`` (who asks)."""
