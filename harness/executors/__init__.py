"""Runs the cells of a suite: what is on this machine, in which order, and what becomes of a cell that fails."""
