"""One ask/tell conversation in memory."""

from __future__ import annotations

from coterie.methods.reports import Evidence, Partial, Weakest
from coterie.session.cluster import cluster
from coterie.session.data_alarms import DataAlarm
from coterie.session.remarks import Alarm, Homogeneity
from coterie.session.result import Result
from coterie.session.session import Session, SessionDone, Waiting

__all__ = [
    "Alarm",
    "DataAlarm",
    "Evidence",
    "Homogeneity",
    "Partial",
    "Result",
    "Session",
    "SessionDone",
    "Waiting",
    "Weakest",
    "cluster",
]
