"""Where models come from: a source in, a folder in Hugging Face layout with the hash of its content out."""
