"""The numbers of the rule (docs/FEATURES.md, section 4), by names of the oracle's own."""

SCALES = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
BATCH = 4
DROP = 0.8
STOP = 3.0
WAIT = 0.8
BETTER = 1.2
DOUBTS = 0.15
CLOSE = 0.5
COLLAPSED = 0.2
PULLS_A_NAT = 2.6
TOO_DEAR = 6.0
FAILURES = 3
UNDOINGS = 24
SEARCH_LIMIT = 100.0
CORE = 3
WHOLE_CORE = 4
