"""The in-process engine: packed continuous batching over Hugging Face models, with lossless speculative decoding."""
