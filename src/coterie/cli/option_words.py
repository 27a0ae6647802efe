"""Errors in the words of the command line: the library names its arguments, people here know options."""

from __future__ import annotations

import re

_NUMBER = r"[-+.\w]+"
_WORDS: tuple[tuple[str, str], ...] = (
    (r"state that the noise is counts", "state --noise counts:TRIALS"),
    (r" \(in Python [^()]*(?:\([^()]*\))?[^()]*\)", ""),
    (r"noise=coterie\.Counts\(trials\)|coterie\.Counts\(trials\)", "--noise counts:TRIALS"),
    (r"coterie\.Bounded\(lo, hi\)", "--noise bounded:LO,HI"),
    (rf"(?:noise=)?(?:coterie\.)?Counts\(trials=({_NUMBER})\)", r"counts:\1"),
    (r"(?:noise=)?(?:coterie\.)?Counts\(\)", "counts"),
    (r"(?:noise=)?(?:coterie\.)?Symmetric\(\)", "symmetric"),
    (r"(?:noise=)?(?:coterie\.)?AtMost\(([^()]*)\)", r"at-most:\1"),
    (r"(?:noise=)?(?:coterie\.)?Exactly\(([^()]*)\)", r"exactly:\1"),
    (r"(?:noise=)?(?:coterie\.)?Bounded\(lo=\(?([^,()]*),?\)?, hi=\(?([^,()]*),?\)?\)", r"bounded:\1,\2"),
    (r"(?:noise=)?(?:coterie\.)?Bounded\(([^,()]*), ([^,()]*)\)", r"bounded:\1,\2"),
    (r"(?:noise=)?(?:coterie\.)?Gaussian\(shape='(\w+)'\)", r"gaussian:\1"),
    (r"(?:noise=)?(?:coterie\.)?Gaussian\(\)", "gaussian"),
    (r"noise=None", "--noise any"),
    (r"noise=…", "--noise"),
    (r"resolution=\(alike, apart\)", "--alike and --apart"),
    (r"\bn_clusters=", "--clusters "),
    (r"\bn_clusters\b", "--clusters"),
    (r"\bn_arms\b", "--arms"),
    (r"\b(noise|method|threshold|groups|norm|claim|delta)=[\"']([\w-]+)[\"']", r"--\1 \2"),
    (r"\bconfirm=", "--confirm "),
    (r"^(noise|delta|threshold|method|dim|costs|confirm) must", r"--\1 must"),
    (r"\bpass_on\b", "--pass-on"),
    (r"\bon_expiry is\b", "--on-expiry is"),
    (r"--noise must be a standard deviation, None, 'gaussian'", "--noise must be a standard deviation, any, gaussian"),
)
_REPLACED = tuple((re.compile(pattern), words) for pattern, words in _WORDS)


def in_option_words(message: str) -> str:
    """The message of an error with options in the place of Python's arguments and classes."""
    for pattern, words in _REPLACED:
        message = pattern.sub(words, message)
    return message
