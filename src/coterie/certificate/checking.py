"""`verify`: does the log prove what the certificate says? Each question has checks of its own, in a module of its own.

A problem is a test that fails, a number that is not the recomputed one, or something in the log that contradicts the
claim. A warning is none of these: the proof stands, and the log still looks as if K were too small, or as if its data
were not made as the proof assumes (`coterie.certificate.beside`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.certificate.beside import check_beside, split_log
from coterie.certificate.fields import MOST_PROBLEMS, read_certificate
from coterie.certificate.group_checking import check_groups
from coterie.certificate.log import read_log
from coterie.certificate.revised import last_stage
from coterie.problem.checks import short
from coterie.problem.families import noise_from_json


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate holds. A verdict is true if it does.

    Attributes
    ----------
    valid
        Whether the log proves what the certificate says.
    problems
        What is wrong, a sentence each; empty if the certificate holds. At most 20 are listed.
    tests
        How many tests were recomputed.
    warnings
        What else the log shows, which does not change whether the certificate holds: groups that look mixed, drift,
        failed asks, corrections.

    Examples
    --------
    >>> import coterie
    >>> verdict = coterie.Verdict(False, ["t is missing"])
    >>> bool(verdict), verdict.problems
    (False, ['t is missing'])
    """

    valid: bool
    problems: list[str] = field(default_factory=list)
    tests: int = 0
    warnings: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.valid


def verify(certificate: Any, log: Any) -> Verdict:
    """Check whether a log proves what a certificate says, with everything recomputed from the log alone.

    No formula is shared with the code that made the certificate, and nothing is taken from it but what it claims.

    Parameters
    ----------
    certificate
        A certificate as a dictionary (`Session.certificate`, `Grouping.certificate`), or the path of a JSON file.
    log
        The log that goes with it: a list of events (`Session.events`, or those of a `Grouping`), or the path of a CSV
        file.

    Returns
    -------
    Verdict
        True if the certificate holds; else `problems` says why not. A bad certificate or log is a verdict too, never an
        exception.

    Raises
    ------
    TypeError
        If an argument is neither data nor a path.
    OSError
        If a file cannot be opened.

    Examples
    --------
    >>> import coterie
    >>> session = coterie.Session(4, 2, 1, noise=1.0)
    >>> while not session.done:
    ...     arm = session.ask()
    ...     session.tell(arm, [9.0 * (arm % 2)])
    >>> verdict = coterie.verify(session.certificate, session.events)
    >>> verdict.valid, verdict.problems
    (True, [])
    >>> changed = session.certificate | {"labels": [0, 0, 1, 1]}
    >>> coterie.verify(changed, session.events).valid
    False
    """
    if not isinstance(certificate, dict | str | os.PathLike):
        raise TypeError(f"a certificate must be a dict or the path of a JSON file, got {short(certificate)}")
    if not isinstance(log, list | tuple | str | os.PathLike):
        raise TypeError(f"a log must be a list of events or the path of a CSV file, got {short(log)}")
    with np.errstate(all="ignore"):  # what overflows is not finite, and reported as that
        try:
            given = certificate if isinstance(certificate, dict) else read_certificate(certificate)
            return _verdict(given, log if isinstance(log, list | tuple) else read_log(log))
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            reason = " ".join(str(error).split())
            if not isinstance(error, ValueError | TypeError) or not reason:
                reason = f"not a certificate with its log: {type(error).__name__} {reason}"
            return Verdict(False, [reason])


def _verdict(given: dict[str, Any], events: Sequence[Any]) -> Verdict:
    """The verdict on a certificate and a log that may be anything; ValueError or TypeError says what is wrong."""
    if given.get("question") == "table":
        from coterie.certificate.table_checking import check_table  # here: SciPy takes a while to load

        checks = check_table(given, events)
        problems = [*checks.problems, *(["a table's certificate has no intervals"] if "intervals" in given else [])]
        return Verdict(not problems, problems, checks.tests)
    log = split_log(events)
    stage, spent = last_stage(given, log.proof)
    if "question" in given:  # a certificate of K groups does not name its question
        from coterie.certificate.near_checking import check_nearness  # here, too

        checks = check_nearness(given, stage, spent)
    elif given.get("by") == "partial":
        from coterie.certificate.partial_checking import check_partial

        checks = check_partial(given, log)
        if "intervals" in given:
            checks.say("a partial certificate has no intervals")
    else:
        checks = check_groups(given, stage, spent)
    beside, warnings = check_beside(given, log, noise_from_json(given["noise"], given["dim"]))
    if "intervals" in given and not (checks.problems or beside):
        from coterie.certificate.interval_checking import check_intervals  # here, too

        beside += check_intervals(given, log, noise_from_json(given["noise"], given["dim"]))
    problems = [*checks.problems, *beside][:MOST_PROBLEMS]
    return Verdict(not problems, problems, checks.tests, [*checks.warnings, *warnings])
