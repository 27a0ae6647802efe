"""What others check: `coterie verify`, whether a certificate follows from its measurement log; `coterie reproduce`, the
paper's tables again; `coterie bench`, the benchmark of a clone.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from coterie.cli.options import Json, Seed, Workers
from coterie.cli.printing import plural, print_json

if TYPE_CHECKING:
    from coterie.problem.families import Model


def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="The certificate, a JSON file.")],
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The measurement log, a CSV file.")],
    as_json: Json = False,
) -> None:
    """Check a certificate against its measurement log. If it does not hold: what is wrong, and exit code 1."""
    from coterie.certificate import Certificate, read_certificate
    from coterie.certificate import verify as recompute
    from coterie.problem.families import noise_from_json
    from coterie.problem.question import ExactGroups
    from coterie.problem.sentences import assumption_in_words

    verdict = recompute(certificate, log)
    if as_json:
        print_json(asdict(verdict) | {"claim": Certificate(read_certificate(certificate)).claimed if verdict else None})
        raise typer.Exit(0 if verdict else 1)
    if not verdict:
        if _is_json(log) and not _is_json(certificate):
            raise ValueError(f"the certificate comes first, then the log: coterie verify {log} {certificate}")
        typer.echo(f"not valid: {certificate} does not follow from {log}")
        for problem in verdict.problems:
            typer.echo(f"- {problem}")
        _warn(verdict.warnings)
        raise typer.Exit(1)
    claim = read_certificate(certificate)
    if claim.get("question") == "table":
        _say_table(claim, verdict.tests)
        return
    kind, count = claim.get("question", ExactGroups.kind), len(set(claim["labels"]))
    sentence = f"valid: {claim['n_arms']} items in {plural(count, 'group')} after {claim['t']} measurements"
    if claim.get("by") == "partial":  # its groups are a guess
        sentence = f"valid: part of a proof for {claim['n_arms']} items after {claim['t']} measurements"
    typer.echo(f"{sentence} ({verdict.tests} tests recomputed)")
    typer.echo(f"what is claimed: {Certificate(claim).claimed}")
    noise = noise_from_json(claim["noise"], claim["dim"])
    assumes = assumption_in_words(noise, kind, claim.get("blocks"), claim.get("strict_blocks", False))
    typer.echo(f"noise: {_in_words(noise)}; what is assumed: {assumes}")
    _warn(verdict.warnings)


def _say_table(claim: dict[str, Any], pairs: int) -> None:
    """What the certificate of a finished table proves."""
    shown = f"{len(claim['apart'])} of {pairs} pairs of {claim['n_arms']} items differ"
    if claim["labels"] is not None:
        shown += f", and they are in {plural(len(set(claim['labels'])), 'group')}"
    typer.echo(f"valid: {shown}, by {claim['t']} rows (all {pairs} pairs recomputed)")
    typer.echo(f"what is claimed: {claim['claim']}")
    typer.echo(f"what is assumed: {claim['assumes']}")


def _in_words(noise: Model) -> str:
    """The family of a noise with what was stated about it."""
    from coterie.problem.checks import short

    plain = noise.to_json()
    if not isinstance(plain, dict):
        return f"known ({short(plain)})"
    stated = ", ".join(f"{name} {short(value)}" for name, value in plain.items() if name != "family")
    return f"{noise.kind} ({stated})" if stated else noise.kind


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}")


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


Part = Annotated[str, typer.Argument(metavar="PART", help="table1, table2, table3, figure3 or all.")]
TrialCount = Annotated[
    int | None,
    typer.Option(
        "--trials",
        "-n",
        help="Independent runs for each cell; only a few where one run takes minutes.",
        show_default="256, as in the paper; 32 for MNIST as described",
    ),
]


def reproduce(
    part: Part = "all",
    trials: TrialCount = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for tables, pictures and trials.")] = Path(
        "reproduction"
    ),
    seed: Seed = 0,
    workers: Workers = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Run on this Dask cluster.", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the runs that an earlier call left in the folder.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute the paper's tables and figures again, and write them beside the printed numbers.

    Finished trials are kept as they finish: after Ctrl-C or a crash, --resume goes on and gives the same numbers.
    """
    from coterie.paper.reproduce import reproduce as run

    try:
        reproduction = run(part, trials=trials, out=out, seed=seed, workers=workers, scheduler=scheduler, resume=resume)
    except KeyboardInterrupt:
        typer.echo(f"coterie: stopped; what is done is in {out}, go on with --resume", err=True)
        raise typer.Exit(130) from None
    if as_json:
        checks = [asdict(check) for check in reproduction.checks]
        print_json({"checks": checks, "seconds": reproduction.seconds, "report": str(reproduction.report)})
        return
    table = Table("part", "", "what should hold", "what was found", title=f"{reproduction.seconds / 60:.1f} minutes")
    for check in reproduction.checks:
        table.add_row(check.part, "[green]✓" if check.holds else "[red]✗", check.claim, check.detail)
    Console().print(table)
    typer.echo(f"report: {reproduction.report}")


def bench(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PART]...", help="What to measure, such as speed or needed.", show_default="all"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Run a little of everything, only to see that it works; the results go to build/bench."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder for the results.", show_default="bench/results")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            "-n",
            help="Runs for each cell of a table, where the part lets you choose.",
            show_default="by part",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Run nothing: print the results that were kept, of all parts or of these.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --show: print JSON instead of tables.")] = False,
) -> None:
    """Compare speed, memory and measurements needed with those of other methods; the tables are kept as JSON.

    Needs a clone of the repository. Each part is kept as soon as it is measured; Ctrl-C loses only the one under way.
    """
    if as_json and not show:
        raise ValueError("--json prints results that were kept: give --show too; a run keeps them as JSON")
    sys.path.insert(0, str(_clone()))
    running = importlib.import_module("bench.running")
    if as_json:
        print_json(running.shown(parts or [], quick, out))
        return
    code = running.run(parts or [], quick, out, show, trials)
    if code:
        raise typer.Exit(code)


def _clone() -> Path:
    """The clone whose benchmark is run: the current folder, or the one that coterie is installed from."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (root / "bench" / "running.py").exists() and (root / "src" / "coterie").is_dir():
            return root
    raise ValueError(
        "the benchmark is not part of the installed package: clone the repository, and there run make bench, "
        'or pip install -e ".[paper,cluster,serve]" and coterie bench'
    )
