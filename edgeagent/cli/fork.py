"""`edgeagent fork`: begin a new session from an old one's records."""

from edgeagent.cli.sessions import fork as fork
