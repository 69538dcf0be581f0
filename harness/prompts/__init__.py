"""Prompts: packaged, from files or from registered data sets, and rendered once to the ids every arm sees."""
