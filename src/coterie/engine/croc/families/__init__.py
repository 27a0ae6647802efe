"""Families of evidence: one module a family, its kernels and how they are put together (docs/EVIDENCE.md).

Kernels are functions of floats and arrays of floats that the planner calls by their address. numba notices changes of
their own file only, so each module holds all that its kernels call.
"""
