"""The subjects of `bench.decode`, one script each: reads a line, writes the five calls, answers with a line."""
