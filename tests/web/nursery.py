"""Forks a server for each line of JSON on standard input: {"store", "port", "token", "user"}.

Importing everything takes seconds; a fork has it. Each server prints its process id, and then
what `coterie serve` prints.
"""

from __future__ import annotations

import encodings.idna
import encodings.unicode_escape
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.optimize
import sqlalchemy.dialects.postgresql.psycopg
import uvicorn.lifespan.on
import uvicorn.loops.uvloop
import uvicorn.protocols.http.httptools_impl
import uvloop

from coterie.campaign import Campaigns
from coterie.web import create_app, serve

LOADED = (encodings.idna, encodings.unicode_escape, np, scipy.optimize, sqlalchemy, uvicorn, uvloop)


def load_everything() -> None:
    """One small campaign to its end, and the application built once."""
    with tempfile.TemporaryDirectory() as folder, Campaigns(Path(folder, "store.db")) as store:
        id = store.create("x", 4, 2, 1, noise=1.0)["id"]
        for k in range(400):
            answer = store.ask(id, "w")
            if answer["done"]:
                break
            (ask,) = answer["asks"]
            value = 6.0 * (ask["arm"] % 2) + 0.1 * (k % 7)
            store.tell(id, [{"id": str(k), "arm": ask["arm"], "values": [value], "lease": ask["lease"]}])
        store.status(id)
        create_app(store)


def main() -> None:
    load_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # killed servers need nobody to bury them
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if order["user"] is not None:
                os.seteuid(order["user"])
            print(os.getpid(), flush=True)
            try:
                serve(order["store"], port=order["port"], token=order["token"], rate=0)
            except BaseException as error:
                print(f"it does not start: {error}", flush=True)
            os._exit(0)


if __name__ == "__main__":
    main()
