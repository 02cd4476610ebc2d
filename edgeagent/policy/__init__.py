"""What must never happen: rules over the session's events and the pending effect. Pure."""
