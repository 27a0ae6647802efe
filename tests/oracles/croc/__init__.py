"""CROC line by line, slow and plain: the oracle that `method="croc"` is tested against (docs/CROC.md, sections 2 to 8).

Every plan is made from the stacks of results, the epochs and the rounds. What lasts from one plan to the next is what
the document says lasts: the estimate with its centers, the latched evidence of pairs, the margins of single arms
between two full plans, and the queue. Sums go by index, one term after the other, and comparisons are written as the
document has them, so that exact ties fall as they do in the engine. Values must lie within 1024 standard deviations of
the first: the engine's second origin for far arms (section 13) is about digits, not about the rule.

`rule` has the constants, `partitions` the estimate, `pairs` the evidence from the start, `risk` and `forecasts` what
decides where to pull, `pulls` where that is, `epochs` the frozen tests and the rounds, `state` what lasts, `run` the
order of decisions.
"""

from __future__ import annotations

from tests.oracles.croc.run import ReferenceCroc

__all__ = ["ReferenceCroc"]
