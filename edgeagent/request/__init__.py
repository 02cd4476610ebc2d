"""What is asked for: which call a request means, and with which values."""
