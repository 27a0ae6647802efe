"""Certificates of CROC, checked by anyone: from the measurement log alone, in plain NumPy, without theory or engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.certificate.checking import Verdict, verify
    from coterie.certificate.document import Certificate
    from coterie.certificate.fields import read_certificate
    from coterie.certificate.log import read_log, write_log

__all__ = ["Certificate", "Verdict", "read_certificate", "read_log", "verify", "write_log"]

_HOMES = {
    "Certificate": "coterie.certificate.document",
    "Verdict": "coterie.certificate.checking",
    "read_certificate": "coterie.certificate.fields",
    "read_log": "coterie.certificate.log",
    "verify": "coterie.certificate.checking",
    "write_log": "coterie.certificate.log",
}
"""Names are loaded when they are first used: who shows a certificate checks none."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coterie.certificate' has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES[name]), name)
    return globals()[name]
