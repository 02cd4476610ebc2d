"""What a trace is good for beyond replay; each file is loaded by the verb that needs it."""
