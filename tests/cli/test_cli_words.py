"""Errors of the command line name options, not classes; noises are known in any case; rates are percentages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import coterie
from coterie.cli import app
from coterie.cli.options import in_option_words
from coterie.problem.settings import Settings

PYTHON = re.compile(r"coterie\.[A-Z]|\b[A-Z]\w+\(|noise=|n_clusters|n_arms|method=|\bNone\b|in Python")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("group t.csv --alike 0.1 --apart 2", "counts (--noise counts:TRIALS), Gaussian noise (--noise gaussian)"),
        ("group t.csv --alike 2% --apart 5% --noise 1", "are rates, which go with counts"),
        ("group t.csv -k 2 --method boc", "--noise, a standard deviation"),
        ("budget -a 8 -k 2 --gap 1 --noise counts:100", "got counts:100"),
        ("budget -a 8 -k 2 --gap 1 --noise bounded:1,5", "got bounded:1.0,5.0"),
        ("budget -a 3 -k 5 --gap 1", "--clusters must be smaller than the number of"),
        ("simulate easy -d 2", "--delta must lie in (0, 1)"),
        ("campaign new q --names a,b,c -k 5", "--clusters must be smaller than the number of"),
        ("campaign new q --names a,b,c -k 2 --confirm 11", "--confirm must be a share of the measurements"),
        ("campaign new q --names a,b,c --alike 1 --apart 2 --noise 1 --confirm 0.5", "--confirm 0.5 looks for"),
        ("campaign new q --names a,b,c -k 2 --pass-on -1", "--pass-on must be positive"),
        ("campaign new q --names a,b,c -k 2 --pass-on 2 --on-expiry wait", "--pass-on must be 0 where --on-expiry is"),
        ("group none.csv", "No such file"),
        ("group only.csv", "needs a column item, sample, name or id"),
    ],
)
def test_errors_name_options(arguments: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("item,x\na,1\na,3.5\nb,2.2\nb,7\nc,9\nc,4\n")
    (tmp_path / "only.csv").write_text("x,y\n1,2.5\n4,3.5\n")
    answer = CliRunner().invoke(app, arguments.split())
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert words in answer.stderr
    assert PYTHON.search(answer.stderr) is None, answer.stderr


def test_words_of_python_become_options() -> None:
    assert (
        in_option_words("give noise=coterie.Counts(trials), or noise=None")
        == "give --noise counts:TRIALS, or --noise any"
    )
    assert in_option_words("got Gaussian(shape='scalar')") == "got gaussian:scalar"
    assert in_option_words('say --copies keep (in Python copies="drop" or copies="keep")') == "say --copies keep"
    assert in_option_words("a file such as noise.csv") == "a file such as noise.csv"


@pytest.mark.parametrize("written", ["gaussian", "Gaussian", "GAUSSIAN", "Symmetric", "Any", "Counts"])
def test_a_noise_is_known_in_any_case(written: str) -> None:
    assert coterie.Session(4, 2, 1, noise=written).noise.kind == written.lower()


def test_rates_are_percentages_of_the_trials() -> None:
    counts = coterie.Counts(trials=200)
    for given in (("2%", "5%"), coterie.Resolution("2%", "5%"), {"alike": "2%", "apart": "5 %"}):
        session = coterie.Session(4, dim=1, noise=counts, resolution=given)
        assert session.resolution == coterie.Resolution(4.0, 10.0)
    settings = Settings.of(4, dim=2, noise=counts, resolution=(["2%", "1%"], ["5%", "10%"]))
    assert settings.question == coterie.Resolution([4.0, 2.0], [10.0, 20.0])
    assert settings.with_resolution(("1%", "4%")).question == coterie.Resolution([2.0], [8.0])
    rates = coterie.Resolution("0.5%", "12.5%")
    assert repr(rates) == "Resolution(alike='0.5%', apart='12.5%', norm='each', claim='references')"
    assert coterie.Resolution.of(rates.to_json()["resolution"]) == rates != coterie.Resolution(0.005, 0.125)
    for wrong, what in ((("2%", 5), "both alike and apart in percent"), (("2%", "500%"), ""), (("x%", "y%"), "")):
        with pytest.raises((ValueError, TypeError), match=what):
            coterie.Session(4, dim=1, noise=counts, resolution=wrong)
    with pytest.raises(ValueError, match="are rates, which go with counts"):
        coterie.Session(4, dim=1, noise=1.0, resolution=("2%", "5%"))


def test_a_campaign_says_which_units_a_resolution_of_counts_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--names", "a,b,c", "--noise", "Counts:100"]
    in_rates = CliRunner().invoke(app, ["campaign", "new", "x", *options, "--alike", "2%", "--apart", "5%"])
    in_counts = CliRunner().invoke(app, ["campaign", "new", "y", *options, "--alike", "2", "--apart", "5"])
    for answer in (in_rates, in_counts):
        assert answer.exit_code == 0, answer.output
        assert (
            "within 5 of its reference, any two references are more than 2 apart (alike and apart are in successes of "
            "100 trials, as rates 0.02 and 0.05)." in answer.stdout
        )
    status = CliRunner().invoke(app, ["campaign", "status", "x"])
    assert "as rates 0.02 and 0.05" in " ".join(status.stdout.split())
