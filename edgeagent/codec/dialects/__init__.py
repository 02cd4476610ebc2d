"""One file a family: how its models write calls."""
