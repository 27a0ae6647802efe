"""`coterie verify`: whether a certificate follows from its measurement log."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.options import Json
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
