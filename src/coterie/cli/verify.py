"""`coterie verify`: whether a certificate follows from its measurement log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE", help="The certificate, a JSON file.")],
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The measurement log, a CSV file.")],
) -> None:
    """Recompute a certificate from the measurement log alone; exit code 1 and what is wrong if it does not hold."""
    from coterie.certificate import read_certificate
    from coterie.certificate import verify as recompute

    verdict = recompute(certificate, log)
    if not verdict:
        if _is_json(log) and not _is_json(certificate):
            raise ValueError(f"the certificate comes first, then the log: coterie verify {log} {certificate}")
        typer.echo(f"not valid: {certificate} does not follow from {log}")
        for problem in verdict.problems:
            typer.echo(f"- {problem}")
        _warn(verdict.warnings)
        raise typer.Exit(1)
    claim = read_certificate(certificate)
    typer.echo(
        f"valid: {claim['n_arms']} arms in {claim['n_clusters']} groups after {claim['t']} measurements, wrong with "
        f"probability at most {claim['delta']:g} ({verdict.tests} tests recomputed)"
    )
    _warn(verdict.warnings)


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {warning}")


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return True
