"""A fixed number of measurements (docs/DEADLINE.md): the run up to it, and the list of single statements it proves."""
