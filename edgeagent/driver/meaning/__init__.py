"""Meaning of texts by a small model, read from its file and computed with numpy."""
