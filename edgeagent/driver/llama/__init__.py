"""The in-process llama.cpp model."""

import os

# llama.cpp's threads wait for each other hundreds of times a token. By default they spin for milliseconds, and on a
# machine that has other work, too, they then wait for whole time slices; never spinning costs a wake-up each time.
# Measured on two cores, SmolLM2, ms for three tokens, alone and beside eight busy processes: default 18 and 2,600,
# never 28 and 50 to 100, a thousand turns (about 15 µs) 18 and 120 to 160.
# Read by the OpenMP library when it is loaded, so it must be set before llama_cpp is imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
