"""Conformance suites: what a method or a journal from outside the package has to do, as functions that check it."""
