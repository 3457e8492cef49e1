"""Logs, through Powertools: a fact once, where it becomes true, values as fields."""

from __future__ import annotations

from aws_lambda_powertools import Logger

logger = Logger(service="worker-manager")
"""The one logger; its level comes from ``POWERTOOLS_LOG_LEVEL``."""
