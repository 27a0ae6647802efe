"""One ask/tell conversation in memory."""

from __future__ import annotations

from coterie.methods.reports import Evidence, Partial, Weakest
from coterie.session.cluster import acluster, cluster
from coterie.session.conversation import SessionDone, Waiting
from coterie.session.data_alarms import DataAlarm
from coterie.session.in_blocks import BlockFull
from coterie.session.remarks import Alarm, Homogeneity
from coterie.session.result import Result
from coterie.session.session import Session

__all__ = [
    "Alarm",
    "DataAlarm",
    "Evidence",
    "Homogeneity",
    "Partial",
    "Result",
    "Session",
    "BlockFull",
    "SessionDone",
    "Waiting",
    "Weakest",
    "acluster",
    "cluster",
]
