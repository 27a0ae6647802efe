"""The sentences on what is proven of K groups: without K, if it is right, and if the data speak against it."""

from __future__ import annotations

import pytest

import coterie
from coterie.certificate import Certificate
from coterie.certificate.group_claim import ALPHA
from coterie.problem.families import noise_of
from coterie.problem.sentences import PAIRS_SHARE, error_in_words, error_without_number, groups_in_words

ALIKE = "if there are exactly 3 groups, the items of a group are alike, those of different groups are not"


def test_what_holds_without_the_number_of_groups_and_what_with_it() -> None:
    assert groups_in_words(3, True) == f"proven: at least 3 groups; and {ALIKE}"
    assert groups_in_words(3, False) == f"proven: {ALIKE}"
    assert groups_in_words(3, False, after=" after 9 measurements") == f"proven after 9 measurements: {ALIKE}"


@pytest.mark.parametrize("at_least", [True, False])
def test_likeness_that_the_data_contradict_is_not_called_proven(at_least: bool) -> None:
    said = groups_in_words(3, at_least, "a group looks mixed")
    assert "not proven: that the items of a group are alike, since a group looks mixed" in said
    assert said.replace("not proven", "").count("proven") == at_least


def test_the_error_without_the_number_is_that_of_the_proof() -> None:
    """(1 - α)δ + αδ·H₀/H of docs/CROC.md, section 10, at its worst: one single group."""
    assert PAIRS_SHARE == ALPHA
    known, unknown = noise_of(1.0, 1), noise_of(None, 1)
    assert error_without_number(8, 3, 0.05, known) == pytest.approx(0.05 * (0.8 + 0.2 * 28 / 15))
    assert error_without_number(12, 11, 0.05, known) == pytest.approx(0.05 * (0.8 + 0.2 * 66))
    assert error_without_number(12, 11, 0.5, known) == 1.0
    assert error_without_number(12, 11, 0.05, unknown) == 0.05
    assert error_in_words(8, 3, 0.05, unknown, True) == "wrong with probability at most 0.05"
    assert error_in_words(8, 3, 0.05, known, True).endswith("at most 0.05, or 0.059 if there are fewer than 3")
    nearly = error_in_words(300, 5, 0.05, known, True)
    assert nearly.endswith("at most 0.05, or 0.0505 if there are fewer than 5")
    assert 0.05 < error_without_number(300, 5, 0.05, known) <= 0.0505
    assert error_in_words(8, 3, 0.05, known, False) == "wrong with probability at most 0.05"
    assert error_in_words(8, 3, 0.05, known, True, by_feature=True) == "wrong with probability at most 0.05"


@pytest.mark.parametrize(("method", "at_least"), [("croc", True), ("boc", False)])
def test_sessions_results_and_certificates_say_the_same(method: str, at_least: bool) -> None:
    result = coterie.cluster(lambda arm: 9.0 * (arm % 3), 6, 3, noise=1.0, method=method, progress=False)
    words = groups_in_words(3, at_least)
    assert result.session.verdict == words
    for shown in (repr(result), repr(result.session), result._repr_html_(), result.session._repr_html_()):
        assert words in shown
    if method == "croc":
        certificate = result.session.certificate
        assert isinstance(certificate, Certificate)
        assert certificate.claimed.startswith(f"at least 3 groups; and {ALIKE}; wrong with probability at most 0.05")
        assert certificate.claimed in certificate._repr_html_()
        contradicted = Certificate(certificate | {"alarm": {"arms": [0, 1, 2, 3]}})
        assert contradicted.claimed.startswith("at least 3 groups; not proven: that the items of a group are alike")
