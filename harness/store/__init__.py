"""Runs on disk: three Parquet tables a cell, written so that a kill at any instant loses at most one cell."""
