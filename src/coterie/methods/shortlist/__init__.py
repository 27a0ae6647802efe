"""A short list of partitions in place of a frozen candidate: docs/CROC.md, section 20."""
