"""Methods on the command line: `--method` and `--register`, both made from the table, and `coterie methods`.

The table is read when a command runs, so that a method that `--register` brings is a choice like any other.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperCommand

from coterie.cli.options import Json
from coterie.cli.printing import print_json

if TYPE_CHECKING:
    from coterie.methods import Method


def offered_methods(simulation: bool) -> list[Method]:
    """The methods of the table; without those that know the truth, unless it is for a simulation."""
    from coterie.methods import METHODS

    return [method for method in METHODS.values() if simulation or not method.simulates_only]


def _method_option(simulation: bool) -> Any:
    def complete(incomplete: str) -> list[tuple[str, str]]:
        offered = offered_methods(simulation)
        return [(method.name, method.sentence) for method in offered if method.name.startswith(incomplete)]

    return typer.Option("--method", "-m", help="How to choose what to measure.", autocompletion=complete)


SimulatedMethod = Annotated[str, _method_option(simulation=True)]
"""`--method` where the truth is known."""
MeasuringMethod = Annotated[str, _method_option(simulation=False)]
"""`--method` where it is not."""
Register = Annotated[
    list[str] | None,
    typer.Option(
        "--register",
        metavar="MODULE",
        envvar="COTERIE_REGISTER",
        help="Methods of your own: a Python module, or a file my_method.py, that calls coterie.methods.register. "
        "May be given several times.",
        show_default=False,
        is_eager=True,  # before --help, which then lists them
        callback=lambda given: register_methods(given),
    ),
]


class SimulationCommand(TyperCommand):
    """A command on instances whose truth is known; its help lists all methods with their sentences."""

    simulation = True

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; what `--method` says is made from the table as it is now."""
        parameters = super().get_params(ctx)
        offered = offered_methods(self.simulation)
        for parameter in parameters:
            if "--method" in parameter.opts:
                listed = "; ".join(f"{method.name}: {method.sentence}" for method in offered)
                parameter.help = f"How to choose what to measure. {listed}."  # type: ignore[attr-defined]
            elif "--distance-ratio" in parameter.opts:
                needing = " and ".join(method.name for method in offered if "distance_ratio" in method.needs)
                text = f"For {needing}: at least which share of the largest distance of groups the smallest is."
                parameter.help = text  # type: ignore[attr-defined]
        return parameters


class MeasuringCommand(SimulationCommand):
    """A command on real measurements; its help lists the methods that need no knowledge of the truth."""

    simulation = False


# Methods from outside the package.

_loaded: set[str] = set()


def register_methods(sources: list[str] | None) -> list[str] | None:
    """Import modules or files that register methods; what goes wrong there is one sentence that names the source."""
    for source in sources or []:
        try:
            _load(source)
        except (SystemExit, Exception) as error:
            message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ValueError(f"--register {source} does not work: {message}") from error
    return sources


def _load(source: str) -> None:
    from coterie.methods.table import METHODS, PACKAGED

    is_file = source.endswith(".py") or "/" in source or "\\" in source
    key = str(Path(source).resolve()) if is_file else source
    if key in _loaded:
        return
    before = dict(METHODS)
    if is_file:
        _run_file(Path(key))
    elif source not in sys.modules:
        _import_module(source)
    else:  # somebody has imported it before: what it registered is in the table by now
        before = {name: METHODS[name] for name in PACKAGED}
    if dict(METHODS) == before:
        raise ValueError("no method was registered: call coterie.methods.register(Method(...)) there")
    _loaded.add(key)


def _run_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = f"coterie_registered_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError("a file of Python ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _import_module(name: str) -> None:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # last: a file here never takes the place of an installed module
    importlib.import_module(name)


# `coterie methods`.


def methods(
    register: Register = None,
    as_json: Json = False,
) -> None:
    """List the methods: what each does, what it needs, and whether it gives a certificate."""
    listed = [described(method) for method in offered_methods(simulation=True)]
    if as_json:
        print_json(listed)
        return
    table = Table()
    for heading in ("method", "what it does", "needs", "its stop is a proof", "certificate"):
        table.add_column(heading, overflow="fold")
    for entry in listed:
        proof = "always" if entry["always_proven"] else "with the proven threshold"
        needs = ", ".join(entry["needs"]) + (" (simulations only)" if entry["simulates_only"] else "")
        cells = (entry["name"], entry["sentence"], needs, proof, "yes" if entry["certifies"] else "no")
        table.add_row(*map(escape, cells))
    Console().print(table)


def described(method: Method) -> dict[str, Any]:
    """An entry of the table of methods as plain JSON."""
    return {
        "name": method.name,
        "sentence": method.sentence,
        "sampling": method.sampling,
        "stopping": method.stopping,
        "needs": sorted(method.needs),
        "certifies": method.certifies,
        "always_proven": not method.has_thresholds,
        "simulates_only": method.simulates_only,
        "rules": method.rules,
    }
