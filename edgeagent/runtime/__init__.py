"""Inbox, loop, session directory and wiring. Knows nothing of terminals or arguments."""
