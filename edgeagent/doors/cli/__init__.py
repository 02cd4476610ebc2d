"""The doors: one file a verb."""
