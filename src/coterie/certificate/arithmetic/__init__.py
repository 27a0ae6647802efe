"""What a certificate states, computed a second time from its log, in plain NumPy: nothing of theory or engine is used.

Formulas and proofs are in docs/CROC.md, docs/EVIDENCE.md and docs/RESOLUTION.md; nothing here decides anything.
"""
