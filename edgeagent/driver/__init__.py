"""One outside thing each: every effect is answered with exactly one event, no foreign exception gets out."""
