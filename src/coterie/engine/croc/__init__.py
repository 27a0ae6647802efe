"""CROC on arrays: pairs from the start, frozen candidates, rounds. The theory and the proof are in docs/CROC.md."""
