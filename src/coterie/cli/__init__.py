"""The commands. Each one reads its arguments, calls one function of the library and prints the answer.

What goes wrong because of the input is one line on standard error and exit code 2; a certificate that does not hold is
exit code 1; Ctrl-C is exit code 130.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coterie import __version__
from coterie.cli.bench import bench
from coterie.cli.campaign import campaign_app
from coterie.cli.demo import demo
from coterie.cli.group import group
from coterie.cli.hardness import hardness
from coterie.cli.methods import MeasuringCommand, SimulationCommand, methods
from coterie.cli.reproduce import reproduce
from coterie.cli.serve import serve
from coterie.cli.simulate import simulate
from coterie.cli.verify import verify


class _OneLineErrors(TyperGroup):
    """The commands as a group in which every error because of the input is one line on standard error."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, TypeError, ImportError, OSError) as error:
            message = " ".join(_message(error).split()) or type(error).__name__
            typer.echo(f"coterie: {message}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("coterie: stopped", err=True)
            raise typer.Exit(130) from None


def _message(error: Exception) -> str:
    """The sentence of an error; that of an error of the system names the file, without the system's number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


app = typer.Typer(
    cls=_OneLineErrors,
    name="coterie",
    help="Which of these items are alike, when every look at an item costs something and is noisy?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command(cls=MeasuringCommand)(group)
app.command()(reproduce)
app.command()(bench)
app.add_typer(campaign_app, name="campaign")
app.command()(serve)
app.command(cls=SimulationCommand)(demo)
app.command(cls=SimulationCommand)(simulate)
app.command()(methods)
app.command()(hardness)
app.command()(verify)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Clustering with bandit feedback."""


def main() -> None:
    """The `coterie` command."""
    app()
