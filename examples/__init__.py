"""Agents that really do something."""
