"""`coterie compile`: all machine code, ahead of its first use."""

from __future__ import annotations

import time

import typer


def compile_command() -> None:
    """Compile everything now, so that nothing has to wait for it later.

    It takes about a quarter of a minute once, and seconds if it was done before. The machine code is kept by numba:
    beside the package, in a folder of the user if that cannot be written, or where NUMBA_CACHE_DIR says. It is for this
    kind of processor; for an image that runs on others set NUMBA_CPU_NAME=generic, both here and there.
    """
    from coterie.simulate.compiling import compile_everything

    begun = time.monotonic()
    folder = compile_everything()
    if folder is None:
        typer.echo("the compiler is switched off (NUMBA_DISABLE_JIT): nothing was compiled")
    else:
        typer.echo(f"compiled in {time.monotonic() - begun:.0f} s; the code of the engine is in {folder}")
