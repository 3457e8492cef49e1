"""Simulated clouds: HTTP services that speak real clouds' protocols to the real SDKs."""
