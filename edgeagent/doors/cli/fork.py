"""`edgeagent fork`: begin a new session from an old one's records."""

from edgeagent.doors.cli.sessions import fork as fork
