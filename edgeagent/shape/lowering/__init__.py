"""The kinds of JSON Schema, each lowered in a file of its own."""
