"""What a request says, piece by piece: its words, numbers, dates, texts and lists. Pure; no model."""
