"""Devices as typed tools: from a profile, or from what a board says of itself."""
