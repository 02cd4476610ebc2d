"""Records as bytes, and the one file that holds them."""
