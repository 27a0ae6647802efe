"""CROC by cells: asks of one block (a plate, a day, a rater, a question) whose composition is fixed before its results.

docs/BLOCKS.md has the proof. `cells.py` keeps what was asked together, `epoch.py` the tests of a frozen candidate,
`factors.py` what a cell is worth to them under each noise, `pairs.py` pairs from the start; `estimate.py`, `bets.py`
and `filling.py` choose what to measure, and enter no proof. `method.py` is the run, on top of `deciding.py`.
"""
