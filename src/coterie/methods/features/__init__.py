"""Which item to measure, and which feature of it: the run where features are measured apart (docs/FEATURES.md)."""
