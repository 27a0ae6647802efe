"""The commands. Each one reads its arguments, calls one function of the library and prints the answer.

What goes wrong because of the input is one line on standard error and exit code 2; a certificate that does not hold is
exit code 1; `campaign ask` while nothing can be measured that could be used is exit code 75; Ctrl-C is exit code 130.
If nobody reads what is printed any more (`| head -1`), the command ends without a word; its exit code is then that of a
program that a closed pipe has ended, 141, or rich's 1 within a table.
"""

from __future__ import annotations

import inspect
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from coterie import __version__
from coterie.cli import campaign, campaign_change, campaign_measure, campaign_new
from coterie.cli.group import group
from coterie.cli.instances import hardness
from coterie.cli.methods import MeasuringCommand, SimulationCommand, methods
from coterie.cli.options import in_option_words
from coterie.cli.reproduce import bench, reproduce, verify
from coterie.cli.serve import serve, token_app
from coterie.cli.simulate import budget, demo, simulate

_PIPE_CLOSED = 128 + 13  # of a program that SIGPIPE has ended


FIRST = ("group", "campaign", "serve", "verify", "demo")
"""What the help lists first, in this order."""


class _OneLineErrors(TyperGroup):
    """The commands as a group in which every error because of the input is one line on standard error."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(_PIPE_CLOSED) from None
        except (ValueError, TypeError, ImportError, OSError) as error:
            message = in_option_words(" ".join(_message(error).split())) or type(error).__name__
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
    help="Find out which items are alike, when every measurement costs something and is noisy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

campaign_app = typer.Typer(
    help="Campaigns: measure for days, with several people, and lose nothing in a crash. A database keeps the results.",
    no_args_is_help=True,
)

# In the order in which the help lists them.
_NUMBERS_MAY_BE_NEGATIVE = {"ignore_unknown_options": True}
campaign_app.command(cls=MeasuringCommand)(campaign_new.new)
campaign_app.command()(campaign_measure.ask)
campaign_app.command(context_settings=_NUMBERS_MAY_BE_NEGATIVE)(campaign_measure.tell)
campaign_app.command()(campaign_measure.fail)
campaign_app.command()(campaign.status)
campaign_app.command()(campaign.partial)
campaign_app.command("list")(campaign.list_campaigns)
campaign_app.command()(campaign.backup)
campaign_app.command("replay", cls=MeasuringCommand, hidden=True)(group)  # an earlier name, which stays
campaign_app.command()(campaign_change.resolution)
campaign_app.command("import")(campaign_change.import_measurements)
campaign_app.command()(campaign_change.export)
campaign_app.command()(campaign_measure.undo)
campaign_app.command("close-block")(campaign_measure.close_block)
campaign_app.command("lease-time")(campaign_change.lease_time)
campaign_app.command()(campaign.archive)
campaign_app.command()(campaign.unarchive)
campaign_app.command()(campaign.delete)
campaign_app.command(context_settings=_NUMBERS_MAY_BE_NEGATIVE)(campaign_measure.correct)
campaign_app.command("budget")(campaign.campaign_budget)
campaign_app.command()(campaign_change.items)
campaign_app.command()(campaign_change.clusters)
campaign_app.command()(campaign_change.delta)
campaign_app.command()(campaign_change.deadline)

research_app = typer.Typer(
    help="For those who study or compare methods: simulations, bounds, the paper's tables, benchmarks.",
    no_args_is_help=True,
)

app.command(cls=MeasuringCommand)(group)
app.add_typer(campaign_app, name="campaign")
app.command()(serve)
app.command()(verify)
app.command(cls=SimulationCommand)(demo)
app.add_typer(token_app, name="token")
app.add_typer(research_app, name="research")
for name, command, kind in (
    ("simulate", simulate, SimulationCommand),
    ("budget", budget, MeasuringCommand),
    ("hardness", hardness, None),
    ("methods", methods, None),
    ("reproduce", reproduce, None),
    ("bench", bench, None),
):
    research_app.command(name, cls=kind)(command)
    app.command(name, cls=kind, hidden=True)(command)  # its name before 0.3, which stays
for apps in (app, campaign_app, research_app, token_app):
    for info in apps.registered_commands:  # lines as wide as the terminal, not as the source
        paragraphs = inspect.cleandoc(getattr(info.callback, "__doc__", None) or "").split("\n\n")
        info.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


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
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where it can be caught, and not when the interpreter ends
    except BrokenPipeError:
        _discard_output()
        sys.exit(_PIPE_CLOSED)


def _discard_output() -> None:
    """Nobody reads standard output any more: what is left in its buffer goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
