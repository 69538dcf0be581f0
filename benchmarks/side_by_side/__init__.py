"""Engines in processes of their own, measured in turn while the others stand still."""
