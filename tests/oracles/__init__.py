"""The algorithms line by line, slow and plain: what the engine is tested against. `tests.oracles` is its import."""
