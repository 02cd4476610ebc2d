"""The in-process llama.cpp model."""
