"""The agent as a pure function over events. No clock, no files, no threads, no policies, no bytes."""
