"""The in-process llama.cpp model."""

import os

# llama.cpp's threads wait for each other hundreds of times a token, by default spinning. On a machine that has other
# work, too, they then wait for whole time slices: with two busy neighbours on two cores a prompt took 72 s instead of 9.
# Read by the OpenMP library when it is loaded, so it must be set before llama_cpp is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
