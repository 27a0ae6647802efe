"""`python -m bench` is `coterie bench`."""

from __future__ import annotations

import sys

from coterie.cli import app

if __name__ == "__main__":
    app(["bench", *sys.argv[1:]])
