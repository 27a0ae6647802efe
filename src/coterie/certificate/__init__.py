"""Certificates of CROC, checked by anyone: from the measurement log alone, in plain NumPy, without theory or engine."""

from __future__ import annotations

from coterie.certificate.checking import Verdict, verify
from coterie.certificate.claim import read_certificate
from coterie.certificate.document import Certificate
from coterie.certificate.log import read_log, write_log

__all__ = ["Certificate", "Verdict", "read_certificate", "read_log", "verify", "write_log"]
