"""DSpark: semi-autoregressive drafting with confidence-scheduled verification."""
