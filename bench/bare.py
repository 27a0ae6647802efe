"""The least that a service of this kind must do, as FastAPI's and SQLAlchemy's own tutorials write it: two handlers.

Each checks its body, writes one row, and answers once that row is on disk. Nothing is decided: arms come in turn. It
answers to the same paths as Coterie's server, so that the same clients can measure both (`bench.service`).

    python -m bench.bare sqlite:////tmp/bare.db
"""

from __future__ import annotations

import itertools
import secrets
import socket
import sys
import time

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import JSON, Engine, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from bench.server import N_ARMS

SECONDS_FOR_A_LOCK = 60.0


class Base(DeclarativeBase):
    """The tables."""


class Lease(Base):
    """A row for each ask."""

    __tablename__ = "leases"
    id: Mapped[str] = mapped_column(primary_key=True)
    campaign: Mapped[str]
    arm: Mapped[int]
    worker: Mapped[str]
    at: Mapped[float]


class Told(Base):
    """A row for each result."""

    __tablename__ = "results"
    id: Mapped[str] = mapped_column(primary_key=True)
    campaign: Mapped[str]
    arm: Mapped[int]
    lease: Mapped[str]
    content: Mapped[list[float]] = mapped_column(JSON)
    at: Mapped[float]


class AskBody(BaseModel):
    """Who asks."""

    worker: str
    n: int = 1


class Measurement(BaseModel):
    """A result."""

    id: str
    arm: int
    values: list[float]
    lease: str


class TellBody(BaseModel):
    """Results."""

    measurements: list[Measurement]


def engine_of(address: str) -> Engine:
    """SQLite with a log of its own and an fsync at every commit, as Coterie has it; PostgreSQL as it comes."""
    if not address.startswith("sqlite"):
        return create_engine(address.replace("postgresql://", "postgresql+psycopg://", 1))
    # One connection, for which threads queue: several would wait for SQLite's lock by sleeping, which is far slower.
    waiting = {"pool_size": 1, "max_overflow": 0, "pool_timeout": SECONDS_FOR_A_LOCK}
    engine = create_engine(address, connect_args={"timeout": SECONDS_FOR_A_LOCK, "check_same_thread": False}, **waiting)

    def durable(connection: object, record: object) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")  # type: ignore[attr-defined]

    event.listen(engine, "connect", durable)
    return engine


def app_on(engine: Engine) -> FastAPI:
    """The two handlers; FastAPI runs them in its threads."""
    Base.metadata.create_all(engine)
    app, turn = FastAPI(), itertools.count()

    @app.get("/healthz")
    def healthz() -> dict[str, bool]:
        return {"ok": True}

    @app.post("/api/campaigns/{campaign}/ask")
    def ask(campaign: str, body: AskBody) -> dict[str, list[dict[str, int | str]]]:
        lease, arm = secrets.token_hex(8), next(turn) % N_ARMS
        with Session(engine) as session:
            session.add(Lease(id=lease, campaign=campaign, arm=arm, worker=body.worker, at=time.time()))
            session.commit()
        return {"asks": [{"arm": arm, "lease": lease}]}

    @app.post("/api/campaigns/{campaign}/tell")
    def tell(campaign: str, body: TellBody) -> dict[str, int]:
        with Session(engine) as session:
            session.add_all(
                Told(id=one.id, campaign=campaign, arm=one.arm, lease=one.lease, content=one.values, at=time.time())
                for one in body.measurements
            )
            session.commit()
        return {"accepted": len(body.measurements)}

    return app


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    app = app_on(engine_of(sys.argv[1]))
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listening])
