"""Evidence that two means are near each other, or far apart: a family of tests for each noise (docs/RESOLUTION.md)."""
