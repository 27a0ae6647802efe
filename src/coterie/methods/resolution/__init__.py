"""Groups up to a resolution, and groups by single linkage: what to measure next, and the tests of frozen candidates."""
