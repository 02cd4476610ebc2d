"""A model behind a network: its endpoint, its credential, the bytes to and fro, and one session's asks of it."""
