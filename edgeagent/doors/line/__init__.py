"""A person at a line: what is shown of it, what is typed, and how one always gets away."""
