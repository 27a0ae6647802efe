"""Where people already work: one module for each package, which it imports. Nothing here is loaded before use."""
