"""Ends at which a person or a program meets a session."""
