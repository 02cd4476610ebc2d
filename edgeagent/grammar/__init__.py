"""What may be written now: from shapes and admissible tools to the text of a grammar. Pure."""
