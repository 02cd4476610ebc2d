"""A Python type, its JSON Schema, and typed values. Pure; knows nothing of agents, models or grammars."""
