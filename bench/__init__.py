"""Benchmarks: every figure is a ratio of two times measured in the same run."""
