"""Suites: what to run, from YAML to a list of cells."""
