"""What every step costs, and the limits it is held to (`budgets.json`). `make bench-gate` measures and judges."""
