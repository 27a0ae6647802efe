"""A finished table: exact tests of "these two items are alike", and which partitions of the items fit them.

Whoever has all rows already, and a number of rows that did not depend on their values, looks once. Then fixed-sample
tests take the place of evidence that holds at every moment, and they need far fewer rows. One analysis answers all
questions:

- `pair_tests`: a p-value for every pair of items, by the noise that was stated;
- `fits`: which partitions of the items fit these p-values. Every partition is tested at level δ, so the true one is
  among those that fit with probability at least 1 − δ, and whatever all of them have in common is proven;
- `differences`: intervals of all differences that hold together, for groups up to a resolution.
"""
