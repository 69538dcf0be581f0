"""The bench: suites, models, prompts, engine, backends, executors, metrics, store, figures and the command line."""
