"""The serial line: its port, the screen it shows, and the console on it."""
