"""Every metric, derived from the raw counts of the Parquet tables, with intervals that resample prompts."""
