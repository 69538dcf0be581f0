"""The drafters DSpark is compared with: lookup, autoregressive and parallel ones."""
