"""One ask/tell conversation in memory."""

from __future__ import annotations

from coterie.session.cluster import Result, cluster
from coterie.session.conversation import Session, SessionDone
from coterie.session.evidence import Alarm, Evidence, Homogeneity, Partial, Weakest

__all__ = ["Alarm", "Evidence", "Homogeneity", "Partial", "Result", "Session", "SessionDone", "Weakest", "cluster"]
