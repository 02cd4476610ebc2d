"""Which models there are, and whether a file and this CPU are fit for one."""
