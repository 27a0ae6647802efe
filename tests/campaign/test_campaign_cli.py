"""`coterie campaign`: what the commands do and print, on real stores."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from sqlalchemy import Engine, event
from typer.testing import CliRunner, Result

from coterie.campaign import Campaigns
from coterie.cli import app


def coterie(*arguments: object, **environment: str) -> Result:
    return CliRunner().invoke(app, ["campaign", *map(str, arguments)], env={"COTERIE_WORKER": "", **environment})


def ok(*arguments: object, **environment: str) -> str:
    answer = coterie(*arguments, **environment)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def refused(*arguments: object, **environment: str) -> str:
    answer = coterie(*arguments, **environment)
    assert answer.exit_code == 2, answer.output
    assert answer.stderr.startswith("coterie: ")
    assert answer.stderr.count("\n") == 1, "one line"
    return answer.stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def test_every_option_of_every_command_is_documented() -> None:
    commands: Any = typer.main.get_command(app)
    family = commands.commands["campaign"]
    assert set(family.commands) >= {"new", "ask", "tell", "fail", "status", "list", "import", "export", "replay"}
    for name, command in family.commands.items():
        assert command.help, name
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options, name
        assert "--store" in options or name == "replay", name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


@pytest.fixture
def begun() -> Iterator[list[str]]:
    """What databases were asked to begin, one entry for each transaction."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("BEGIN"):
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield statements
    event.remove(Engine, "before_cursor_execute", note)


def test_ask_and_tell_need_one_transaction_that_reads_and_one_that_writes(here: Path, begun: list[str]) -> None:
    ok("new", "beans", "--clusters", 2, "--names", "a,b,c", "--noise", 1)
    for _ in range(3):
        begun.clear()
        (ask,) = json.loads(ok("ask", "beans", "--json"))["asks"]
        assert begun == ["BEGIN", "BEGIN IMMEDIATE"]
        begun.clear()
        assert "(measurement 1 of this item" in ok("tell", "beans", "--lease", ask["lease"], 2.5)
        assert begun == ["BEGIN", "BEGIN IMMEDIATE"]


def test_a_campaign_from_beginning_to_end(here: Path) -> None:
    made = json.loads(ok("new", "beans", "--names", "a,b,c", "-k", 2, "--noise", 1, "--json"))
    assert (made["n_arms"], made["names"], made["dim"]) == (3, ["a", "b", "c"], 1)
    heights = {"a": 9.0, "b": -9.0, "c": 9.5}
    count = 0
    while not (answer := json.loads(ok("ask", "beans", "-n", 2, "--worker", "w", "--json")))["done"]:
        for ask in answer["asks"]:
            count += 1
            told = ok("tell", "beans", "--lease", ask["lease"], heights[ask["name"]])
            assert re.search(rf"^on record: {ask['name']}: -?9\.\d \(measurement \d+ of this item, id lease-", told)
            assert told.split("\n")[0].endswith(f"id lease-{ask['lease']})")
            again = ok("tell", "beans", "--lease", ask["lease"], heights[ask["name"]])
            assert "was on record already" in again
    assert count >= 3
    assert "nothing: the groups are found" in ok("ask", "beans")
    shown = ok("status", "beans")
    assert re.search(r"Proven after \d+ measurements: at least 2 groups; and if there are exactly 2", shown)
    assert "a, c" in shown
    found = json.loads(ok("status", made["id"], "--json"))
    assert found["labels"] == [0, 1, 0]
    assert "beans" in ok("list")
    assert made["id"][:8] in ok("list")
    (listed,) = json.loads(ok("list", "--json"))
    assert (listed["id"], listed["done"], listed["measurements"]) == (made["id"], True, count)
    ok("export", "beans", "--kind", "certificate", "-o", "certificate.json")
    ok("export", "beans", "--kind", "log", "-o", "log.csv")
    verdict = CliRunner().invoke(app, ["verify", "certificate.json", "log.csv"])
    assert verdict.exit_code == 0, verdict.output
    assert json.loads(ok("export", "beans", "--json"))["format"] == "coterie-campaign-1"


@pytest.mark.parametrize(
    "values", [("-1.5", "2"), ("--", "-1.5", "2"), ("2", "-1.5"), ("-1e-3", "-.5"), ("--", "2", "-3")]
)
def test_negative_numbers_are_values(here: Path, values: tuple[str, ...]) -> None:
    ok("new", "beans", "-a", 3, "-k", 2, "--dim", 2)
    ok("tell", "beans", "--arm", 1, "--id", "m", *values)
    with Campaigns(here / "coterie.db") as store:
        (row,) = store.measurements(store.list()[0]["id"])["measurements"]
    assert row["values"] == [float(value) for value in values if value != "--"]
    assert (row["id"], row["arm"]) == ("m", 1)


def test_telling_by_arm_answers_ones_own_ask(here: Path) -> None:
    ok("new", "beans", "--names", "0,1,2", "-k", 2)  # names that look like numbers, in their order
    ok("ask", "beans", "-w", "ann")
    ok("ask", "beans", "-w", "bob")
    ok("tell", "beans", "--arm", "1", "-w", "bob", 3.0)
    found = json.loads(ok("status", "beans", "--json"))
    assert [(one["name"], one["worker"]) for one in found["open_leases"]] == [("0", "ann")]
    told = json.loads(ok("tell", "beans", "--arm", "2", 1.0, "--json", COTERIE_WORKER="cleo"))
    assert told["accepted"] == 1
    found = json.loads(ok("status", "beans", "--json"))
    assert [one["worker"] for one in found["workers"]] == ["ann", "bob", "cleo"]
    assert "ann" in ok("status", "beans")


def test_a_number_that_is_no_name_is_not_a_place_among_numbers(here: Path) -> None:
    ok("new", "beans", "--names", "10,20,30", "-k", 2)
    assert "unknown arm '1'" in refused("tell", "beans", "--arm", 1, 4.5)
    ok("tell", "beans", "--arm", 20, 4.5)


def test_fail_frees_the_lease(here: Path) -> None:
    ok("new", "beans", "-a", 3, "-k", 2)
    (ask,) = json.loads(ok("ask", "beans", "--json"))["asks"]
    assert "freed: 0" in ok("fail", "beans", ask["lease"], "--reason", "spilled")
    assert json.loads(ok("fail", "beans", ask["lease"], "--json"))["freed"]
    assert json.loads(ok("status", "beans", "--json"))["open_leases"] == []


def measured(text: str) -> list[list[str]]:
    """Lines of an export without when and by whom they were told."""
    return [line.split(",")[:-3] for line in text.splitlines()]


def test_import_and_export(here: Path) -> None:
    ok("new", "one", "--names", "a,b,c", "-k", 2, "--dim", 2, "--noise", "1.5,2")
    ok("new", "two", "--names", "a,b,c", "-k", 2, "--dim", 2, "--noise", "[[2.25,0],[0,4]]")
    (here / "old.csv").write_text("when,arm,h,w\nmon,a,1,2\ntue,b,3,4\n")
    assert "2 measurements taken in" in ok("import", "one", "old.csv", "--values", "h,w")
    assert "0 measurements taken in, 2 were on record" in ok("import", "one", "old.csv", "--values", "h,w")
    ok("export", "one", "--out", "one.csv")
    assert json.loads(ok("import", "two", "one.csv", "--json"))["accepted"] == 2
    assert (here / "one.csv").read_text() == ok("export", "one")
    assert measured(ok("export", "two")) == measured(ok("export", "one"))
    (here / "bad.csv").write_text("arm,a,b\nz,1,2")
    assert "line 2, column 'arm'" in refused("import", "one", "bad.csv")
    assert "No such file" in refused("import", "one", "nowhere.csv")


def test_an_import_says_in_which_order_it_took_the_rows(here: Path) -> None:
    (here / "old.csv").write_text("\n".join(["arm,v0", *(f"{'abc'[k % 3]},{k}" for k in range(30))]))
    for name in ("shuffled", "kept"):
        ok("new", name, "--names", "a,b,c", "-k", 2)
    said = ok("import", "shuffled", "old.csv")
    events = json.loads(ok("export", "shuffled", "--kind", "json"))["events"]
    (order,) = (one["order"] for one in events if one["kind"] == "imported")
    assert order["shuffled"]
    assert said == (
        "30 measurements taken in, 0 were on record already\n"
        f"Each item's measurements were shuffled (seed {order['seed']}): their order plays no role. How many there are "
        "must not depend on their values.\n"
        "(In a campaign's own export the number does: import that with --in-order.)\n"
    )
    assert ok("import", "shuffled", "old.csv") == "0 measurements taken in, 30 were on record already\n"
    assert ok("import", "kept", "old.csv", "--in-order") == (
        "30 measurements taken in, 0 were on record already\n"
        "Each item's measurements were taken in the order of the file. This assumes that their order has nothing to do "
        "with their values, as when it is the order in which they were measured.\n"
    )
    values = {
        name: [line.split(",")[2] for line in ok("export", name).splitlines()[1:]] for name in ("shuffled", "kept")
    }
    assert values["kept"] == [f"{k}.0" for k in range(30)]
    assert values["shuffled"] != values["kept"]
    assert sorted(values["shuffled"]) == sorted(values["kept"])


def test_replay_of_a_pool(here: Path) -> None:
    rows = ["arm,v", *(f"{name},{value + k / 50}" for k in range(30) for name, value in [("a", 0), ("b", 5), ("c", 5)])]
    (here / "pool.csv").write_text("\n".join(rows))
    shown = ok("replay", "pool.csv", "-k", 2, "--noise", 1, "--shuffled")
    assert re.search(r"\d+ of 90 measurements would have been enough", shown)
    found = json.loads(ok("replay", "pool.csv", "-k", 2, "--noise", 1, "--shuffled", "--json"))
    assert found["done"]
    (here / "pool.csv").write_text("\n".join(rows[:4]))
    shown = ok("replay", "pool.csv", "-k", 2, "--noise", 1, "--shuffled", "--delta", 1e-9)
    assert "the method asked for one more" in shown
    assert "All 3 measurements are not enough" in shown
    assert "Undecided" in shown
    (here / "pool.csv").write_text("\n".join(rows))
    shown = ok("replay", "pool.csv", "-k", 2, "--noise", 1, "-m", "uniform", "--threshold", "heuristic")
    assert "heuristic threshold, no proof" in shown
    assert not (here / "coterie.db").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("new", "x", "-k", 2), "say how many items there are"),
        (("new", "x", "-k", 2, "-a", 3, "--names", "a,b"), "--items is 3, but there are 2 names"),
        (("new", "x", "-k", 3, "-a", 3), "--clusters must be smaller"),
        (("new", "x", "-k", 2, "-a", 3, "--noise", "big"), "--noise big: write one of any, any:shape, gaussian,"),
        (("new", "x", "-k", 2, "-a", 3, "--noise", "-1"), "must be positive"),
        (("new", "x", "-k", 2, "-a", 3, "--names-file", "nowhere"), "No such file"),
        (("ask", "peas"), "there is no campaign 'peas'"),
        (("ask", "twice"), "2 campaigns are called 'twice', use an id: "),
        (("ask", "twice"), "Z, 1 measurement"),
        (("new", "beans", "-a", 3, "-k", 2), "there is a campaign 'beans' already ("),
        (("new", "x", "-k", 2, "--names", "a;b;c"), "--names are separated by commas, as a,b,c, got 'a;b;c'"),
        (("new", "x", "-k", 2, "-a", 3, "--values", "h,w", "--dim", 3), "value_names must be 3 strings"),
        (("new", "x", "-k", 2, "-a", 3, "--values", "h,h"), "must differ from each other and from arm and id, got 'h'"),
        (
            ("new", "x", "-k", 2, "-a", 3, "--values", "h,ID"),
            "must differ from each other and from arm and id, got 'ID'",
        ),
        (("tell", "trees", "--arm", "larhc", 1, 2), "unknown arm 'larhc': did you mean 'larch'?"),
        (("tell", "trees", "--arm", "oak", 1), "coterie: a measurement is 2 numbers (height, girth), got 1"),
        (("tell", "beans", "--arm", 0, "15,2"), "got '15,2': write it with a point, 15.2"),
        (("list", "--store", "words.txt"), "words.txt is not a store, but a file of another kind"),
        (("import", "beans", "."), "is a folder"),
        (("export", "beans", "--out", "no/where.csv"), "no/where.csv: No such file"),
        (("ask", "beans", "-n", 0), "n must be at least 1"),
        (("tell", "beans", 1.0), "say what was measured"),
        (("tell", "beans", "--arm", 0, "x"), "a measurement is numbers, got 'x'"),
        (("tell", "beans", "--arm", 0, "nan"), "must be finite"),
        (("tell", "beans", "--arm", 0, "--leese", "5"), "a measurement is numbers, got '--leese'"),
        (("tell", "beans", "--arm", 9, 1.0), "unknown arm 9"),
        (("tell", "beans", "--arm", "z", 1.0), "unknown arm 'z'"),
        (("tell", "beans", "--arm", 0, 1.0, 2.0), "a measurement is 1 number, got 2"),
        (("tell", "beans", "--lease", "q", 1.0), "there is no lease 'q'"),
        (("fail", "beans", "q"), "there is no lease 'q'"),
        (("export", "beans", "--kind", "certificate"), "has no certificate yet"),
        (("replay", "nowhere.csv", "-k", 2), "No such file"),
        (("status", "beans", "--store", "elsewhere.db"), "there is no store at elsewhere.db"),
        (("list", "--store", "mysql://x/y"), "a store is sqlite:///FILE or postgresql://…"),
    ],
)
def test_what_is_wrong_is_one_line(here: Path, arguments: tuple[Any, ...], what: str) -> None:
    ok("new", "beans", "-a", 3, "-k", 2)
    ok("new", "trees", "--names", "oak,ash,larch", "-k", 2, "--values", "height,girth")
    with Campaigns(here / "coterie.db") as store:
        ids = [store.create("twice", 3, 2, 1, noise=1.0)["id"] for _ in range(2)]
        store.tell(ids[1], [{"id": "a", "arm": 0, "values": 1.0}])
    (here / "words.txt").write_text("no database " * 100)
    assert what in refused(*arguments)
    assert not (here / "elsewhere.db").exists()


def test_the_store_is_named_by_option_or_environment(here: Path, url: str) -> None:
    ok("new", "beans", "-a", 3, "-k", 2, "--store", url)
    assert "beans" in ok("list", COTERIE_STORE=url)
    (here / "names.txt").write_text("oak\n\nash\nelm\n")
    made = json.loads(ok("new", "trees", "--names-file", "names.txt", "-k", 2, "--json", COTERIE_STORE=url))
    assert made["names"] == ["oak", "ash", "elm"]
    assert "oak" in ok("ask", made["id"][:8], COTERIE_STORE=url)
    assert not (here / "coterie.db").exists()


def test_what_was_recorded_is_said_and_doubtful_values_are_named(here: Path) -> None:
    ok("new", "beans", "--names", "navy,pinto,fava", "-k", 2, "--values", "length,width", "--noise", "0.5 0.3")
    told = ok("tell", "beans", "--arm", "pinto", "--id", "m1", "15.2", "8.10")
    assert told == "on record: pinto: length 15.2, width 8.10 (measurement 1 of this item, id m1)\n"
    assert "measurement 2 of this item" in ok("tell", "beans", "--arm", "pinto", "15.3", "8.2")
    asked = coterie("tell", "beans", "--arm", "pinto", "15.1", "81")  # nobody is there to be asked
    assert asked.exit_code == 2
    assert "81 (width) is 243 standard deviations from the 8.15 of pinto before. Save it anyway?" in asked.stderr
    typo = coterie("tell", "beans", "--arm", "pinto", "15.1", "81", "--yes")
    assert typo.exit_code == 0
    assert "measurement 3 of this item" in typo.stdout
    far = "warning: pinto: 81 (width) lies 243 standard deviations from the mean of its 2 earlier results, 8.15."
    assert typo.stderr.startswith(far)
    assert coterie("tell", "beans", "--arm", "navy", "1e9", "81").stderr == ""  # the first: nothing to compare it with
    (here / "more.csv").write_text("arm,width,length\nfava,8,14\nfava,80,14\n")
    answer = coterie("import", "beans", "more.csv", "--in-order")
    assert "2 measurements taken in" in answer.stdout
    assert "warning: fava: 80 (width) lies 240" in answer.stderr
    assert ok("export", "beans").splitlines()[0] == "id,arm,length,width,told,worker,token"
    assert "fava,14.0,8.0" in ok("export", "beans")
    ok("new", "again", "--names", "navy,pinto,fava", "-k", 2, "--values", "length,width", "--noise", "0.5,0.3")
    ok("export", "beans", "-o", "all.csv")
    ok("import", "again", "all.csv", "--in-order")
    assert measured(ok("export", "again")) == measured(ok("export", "beans"))


def hint(text: str) -> list[str]:
    """The words of the command that an answer proposes."""
    (found,) = re.findall(r"coterie campaign (.*)", text)
    return shlex.split(found)


def test_hints_work_when_they_are_copied(here: Path) -> None:
    store = ("--store", "my lab.db")
    made = ok("new", "dry beans", "--names", "navy,pinto,fava", "-k", 2, "--values", "length,width (mm)", *store)
    asked = ok(*hint(made), "--worker", "ann b")
    words = hint(asked)
    assert words[-4:] == [*store, "LENGTH", "WIDTH-MM"]
    ok(*words[:-2], 1, 2)
    status = ok("status", "dry beans", *store)
    assert "Assumed: exactly 2 groups; any noise: results of items in one group have the same distribution" in status
    assert "navy" in ok(*hint(status), "--worker", "c") + asked
    with Campaigns(here / "my lab.db") as opened:
        (row,) = opened.list()
        (one,) = opened.measurements(row["id"])["measurements"]
    assert (one["worker"], one["values"]) == ("ann b", [1.0, 2.0])
    assert hint(ok("status", "dry beans", COTERIE_STORE="my lab.db"))[:2] == ["ask", "dry beans"]
    assert "--store" not in ok("status", "dry beans", COTERIE_STORE="my lab.db")


def test_the_steps_after_the_proof_can_be_copied(here: Path) -> None:
    ok("new", "beans", "--names", "a,b,c,d", "-k", 2, "--values", "x,y", "--noise", "1,2", "--store", "lab.db")
    rows = [f"{name},{10 * (name in 'bd') + k / 9},{k / 7}" for k in range(9) for name in "abcd"]
    (here / "old.csv").write_text("\n".join(["arm,x,y", *rows]))
    ok("import", "beans", "old.csv", "--store", "lab.db")
    shown = ok("status", "beans", "--store", "lab.db")
    assert "standard deviations 1 (x), 2 (y)" in shown
    assert "center: x, y" in shown
    commands = re.findall(r"^  coterie (.*)$", shown, flags=re.M)
    assert len(commands) == 4
    for command in commands:
        answer = CliRunner().invoke(app, shlex.split(command))
        assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith("valid: 4 items in 2 groups")
    groups = (here / "groups.csv").read_text().splitlines()
    assert groups[0] == "item,group,proven,measurements,mean x,mean y,letters"
    cells = [line.split(",") for line in groups[1:]]
    assert [(item, group, proven, count) for item, group, proven, count, *_ in cells] == [
        ("a", "1", "yes", "9"), ("b", "2", "yes", "9"), ("c", "1", "yes", "9"), ("d", "2", "yes", "9"),
    ]  # fmt: skip
    assert float(cells[1][4]) == pytest.approx(10 + 4 / 9)
    proof = json.loads((here / "certificate.json").read_text())
    assert (proof["names"], proof["groups"]) == (["a", "b", "c", "d"], [1, 2, 1, 2])
    swapped = CliRunner().invoke(app, ["verify", "log.csv", "certificate.json"])
    assert swapped.exit_code == 2
    assert "the certificate comes first, then the log: coterie verify certificate.json log.csv" in swapped.stderr


def test_status_shows_the_alarm_and_whether_groups_look_like_one(here: Path) -> None:
    """An alarm is followed by the commands that ask for more groups, and that export the measurements."""
    draws = np.random.default_rng(0).normal(size=24)
    means = dict(zip("abcd", (0, 0, 20, 50), strict=True))
    rows = [f"{name},{means[name] + draws[k]}" for k, name in enumerate("abcd" * 6)]
    (here / "old.csv").write_text("\n".join(["arm,v0", *rows]))
    for name, count in (("few", 2), ("right", 3)):
        ok("new", name, "--names", "a,b,c,d", "-k", count, "--noise", 1)
        ok("import", name, "old.csv")
    shown = " ".join(ok("status", "few").split())
    assert "but the measurements refute 2 groups: there are at least 3" in shown
    assert re.search(r"Alarm: K = 2 is refuted: items \w, \w and \w are pairwise known to differ", shown)
    found = json.loads(ok("status", "few", "--json"))["alarm"]
    assert {"c", "d"} < set(found["names"])
    assert "next: ask for 3 groups, nothing is measured again: coterie campaign clusters few 3" in shown
    assert "or the measurements, for a campaign with more groups or a larger noise:" in shown
    assert "coterie campaign export few --kind csv --out measurements.csv" in shown
    right = " ".join(ok("status", "right").split())
    assert "Each group looks like one: its measurements differ by no more than chance (tested at 1 %)." in right
    assert "Alarm" not in right
    assert json.loads(ok("status", "right", "--json"))["homogeneity"]["mixed"] == []


def test_the_list_is_readable_on_a_small_screen(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ok("new", "water samples of 2026", "-a", 2000, "-k", 12)
    ok("ask", "water samples of 2026", "-n", 150)
    shown = ok("list")
    assert max(map(len, shown.splitlines())) <= 80
    assert "water samples of 2026" in shown  # not folded
    assert "150 under way" in shown


@pytest.mark.slow
def test_without_sqlalchemy_the_error_says_what_to_install(here: Path) -> None:
    script = "import sys; sys.modules.update(sqlalchemy=None); from coterie.cli import main; main()"
    command = [sys.executable, "-c", script, "campaign", "list", "--store", "nuts.db"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert refused.returncode != 0
    assert "campaigns need SQLAlchemy: pip install" in refused.stderr
