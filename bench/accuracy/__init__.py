"""How often is the right call written? Public sets of requests, and our own, on any model."""
