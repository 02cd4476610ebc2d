"""The door on the network of the house: sessions over HTTP, for programs and for OpenAI's clients."""
