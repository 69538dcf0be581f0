"""Figures of a run: from frames to matplotlib figures, and from those to files with the data beside them."""
