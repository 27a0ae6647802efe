"""The hook for Inspect AI, with the real package and its mock models: no network."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pytest

import coterie

pytest.importorskip("inspect_ai")

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

from coterie.integrations.inspect import GroupedModels

pytestmark = pytest.mark.slow  # to import Inspect takes three seconds

SKILLS = {"weak-a": 0.05, "weak-b": 0.05, "good": 0.95}
NAMES = [f"mockllm/{name}" for name in SKILLS]


def model(name: str, failing: frozenset[str] = frozenset()) -> Model:
    """A model that answers so many questions right, by chance, and breaks at some."""
    rng = random.Random(name)

    def answer(messages: Any, *_: Any) -> ModelOutput:
        if messages[-1].text in failing:
            raise RuntimeError("no answer")
        output = ModelOutput.from_content(name, "yes" if rng.random() < SKILLS[name] else "no")
        output.usage = ModelUsage()  # else tokens are counted with a file from the network
        return output

    return get_model(f"mockllm/{name}", custom_outputs=answer, memoize=False)


def questions(count: int, scorer: Any = None, **task: Any) -> Task:
    """A task of so many questions."""
    samples = [Sample(input=f"question {number}", target="yes", id=number) for number in range(1, count + 1)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=scorer, **task)


def session(**settings: Any) -> coterie.Session:
    """A session about the models."""
    return coterie.Session(NAMES, 2, 1, noise=coterie.Counts(), blocks="drawn", **settings)


def evaluated(task: Task, folder: Path, models: list[Model] | None = None, **options: Any) -> list[Any]:
    """The logs of an evaluation of all models at once."""
    wanted = [model(name) for name in SKILLS] if models is None else models
    return list(eval(task, wanted, sample_shuffle=1, display="none", log_dir=str(folder), **options))


def test_models_side_by_side_are_grouped_and_the_rest_is_skipped(tmp_path: Path) -> None:
    hook = GroupedModels(session())
    logs = evaluated(questions(120, match(), early_stopping=hook), tmp_path)
    assert [log.status for log in logs] == ["success"] * 3
    assert hook.session.done
    assert hook.session.labels.tolist() == [0, 0, 1]
    assert coterie.verify(hook.session.certificate, hook.session.events).valid
    run = sum(len(log.samples) for log in logs)
    stopped = sum(len(log.results.early_stopping.early_stops) for log in logs)
    assert run + stopped == 360
    assert hook.skipped == stopped > 90
    told = logs[-1].results.early_stopping.metadata
    assert told["groups"] == [NAMES[:2], NAMES[2:]]


def test_answers_of_one_question_are_one_block(tmp_path: Path) -> None:
    hook = GroupedModels(session())
    evaluated(questions(12, match(), early_stopping=hook), tmp_path)
    kept = hook.session
    cells = [cell for cell in kept.decisions if cell["event"] == "cell"]
    assert sorted(cell["block"] for cell in cells) == sorted(map(str, range(1, 13)))
    assert all(sorted(cell["pulls"]) == [0, 1, 2] for cell in cells)
    assert kept.n_measurements == 36
    assert kept.pending == []


def test_parts_one_after_the_other_are_grouped_too_also_from_a_saved_session(tmp_path: Path) -> None:
    kept, ran = session(), 0
    for start in range(0, 120, 20):
        for name in SKILLS:
            hook = GroupedModels(kept)
            (log,) = evaluated(questions(120, match(), early_stopping=hook), tmp_path, [model(name)],
                               limit=(start, start + 20))  # fmt: skip
            ran += len(log.samples or [])
            kept = coterie.Session.from_dict(kept.to_dict())
    assert kept.done
    assert kept.labels.tolist() == [0, 0, 1]
    assert ran < 300


def test_one_after_the_other_on_all_questions_is_said_to_spare_nothing(tmp_path: Path) -> None:
    hook = GroupedModels(session(), ahead=2)
    with pytest.warns(UserWarning, match="one model after the other"):
        evaluated(questions(8, match(), early_stopping=hook), tmp_path, max_tasks=1)
    assert hook.skipped == 0


def test_a_task_without_scores_runs_to_its_end_and_one_sentence_says_so(tmp_path: Path) -> None:
    hook = GroupedModels(session())
    with pytest.warns(UserWarning, match="Inspect gave no score") as caught:
        logs = evaluated(questions(5, early_stopping=hook), tmp_path)
    assert len([entry for entry in caught if "no score" in str(entry.message)]) == 1
    assert [(log.status, len(log.samples)) for log in logs] == [("success", 5)] * 3
    assert hook.session.n_measurements == 0
    assert hook.session.pending == []


def test_samples_that_fail_are_given_up_and_nobody_waits_for_them(tmp_path: Path) -> None:
    hook = GroupedModels(session(), ahead=2)
    models = [model("weak-a", frozenset({"question 3"})), model("weak-b"), model("good")]
    logs = evaluated(questions(120, match(), early_stopping=hook), tmp_path, models, fail_on_error=False)
    assert [log.status for log in logs] == ["success"] * 3
    assert hook.session.done


def test_warnings_as_errors_end_no_evaluation(tmp_path: Path) -> None:
    hook = GroupedModels(session(), scorer="another")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        logs = evaluated(questions(3, match(), early_stopping=hook), tmp_path)
    assert [log.status for log in logs] == ["success"] * 3


def test_another_model_or_other_questions_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    hook = GroupedModels(session())
    (log,) = evaluated(questions(3, match(), early_stopping=hook), tmp_path, [model("good")], model_args={})
    assert log.status == "success"
    other = Task(dataset=MemoryDataset([Sample(input="what else?", target="yes", id=1)]), solver=generate(),
                 scorer=match(), early_stopping=hook)  # fmt: skip
    (log,) = evaluated(other, tmp_path, [model("weak-a")])
    assert log.status == "error"
    assert "not the same question" in log.error.message
    unknown = GroupedModels(coterie.Session(["a", "b", "c"], 2, 1, noise=coterie.Counts(), blocks="drawn"))
    (log,) = evaluated(questions(3, match(), early_stopping=unknown), tmp_path, [model("good")])
    assert "no item of the session" in log.error.message


def test_epochs_count_as_their_mean(tmp_path: Path) -> None:
    kept = coterie.Session(NAMES, 2, 1, blocks="drawn")
    evaluated(questions(4, match(), early_stopping=GroupedModels(kept)), tmp_path, epochs=2)
    assert kept.n_measurements == 12
    assert {float(values[0]) for _, values in kept.log} <= {0.0, 0.5, 1.0}


def test_a_session_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="blocks='drawn'"):
        GroupedModels(coterie.Session(NAMES, 2, 1))
    with pytest.raises(ValueError, match="on_alarm"):
        GroupedModels(session(), on_alarm="ring")
