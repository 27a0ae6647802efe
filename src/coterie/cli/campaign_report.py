"""Tables of `coterie campaign` for people: the status of a campaign, and any rows under headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from coterie.cli.campaign import waiting_lines
from coterie.cli.printing import first_names, pair_lines, print_letters, print_lines, print_table
from coterie.problem.costs import cost_text
from coterie.problem.question import Resolution

_MOST_NUMBERS = 12


def print_status(status: dict[str, Any], handed: dict[str, Any] | None = None) -> None:
    """Print the status of a campaign: verdict, warnings, evidence, groups, leases, workers.

    `handed`: what it hands over at its deadline, if that is reached.
    """
    console = Console()
    console.print(escape(f"{status['name']} ({status['id']})"), style="bold", highlight=False)
    _print_verdict(console, status)
    evidence = status["evidence"]
    if not status["done"] and evidence["threshold"] is not None:
        share = min(99, round(100 * status["progress"]["share"]))  # as the page has it
        console.print(f"progress: {share} %", highlight=False, markup=False)
        console.print(f"measurements: {measurements_left(status)}", highlight=False, markup=False)
        text = f"evidence {evidence['statistic']:.2f} of {evidence['threshold']:.2f}"
        console.print(text, highlight=False, markup=False)
        weakest = evidence["weakest"]
        if weakest is not None:
            against = "" if weakest["against_name"] is None else f" (item {weakest['against_name']})"
            text = f"weakest: is {weakest['name']} apart from group {weakest['group_id']}{against}?"
            console.print(text, highlight=False, markup=False)
    for line in [*_deadline(status, handed), *_spent(status), *_waiting(status), *waiting_lines(status["waiting_for"])]:
        console.print(line, highlight=False, markup=False)
    if status["groups"]:
        shown = ", ".join if status["done"] else first_names  # a result is never cut short
        named = ["reference"] if "reference" in status["groups"][0] else []
        rows = [
            [group["id"], group["size"], *([group["reference"]["name"]] if named else []), _center(group["center"]),
             shown(group["names"])]
            for group in status["groups"]
        ]  # fmt: skip
        called = status["value_names"]
        center = "center" if called is None else f"center: {first_names(called)}"
        title = "groups" if status["done"] else "groups, so far"
        print_table(["group", "items", *named, center, "members"], rows, title)
    if status["borders"]:
        near = [f"{entry['name']} (also {_groups_called(entry['could_be'])})" for entry in status["borders"]]
        text = f"Near a border, and could belong elsewhere: {first_names(near)}."
        console.print(text, highlight=False, markup=False)
    if status["open_leases"]:
        of = ["feature"] if "feature" in status["open_leases"][0] else []
        rows = [
            [entry["name"], *(entry[key] for key in of), entry["worker"],
             entry["expires"] + (" (over)" if entry["expired"] else ""), entry["lease"]]
            for entry in status["open_leases"]
        ]  # fmt: skip
        print_table(["item", *of, "worker", "until", "lease"], rows, "under way")
    _print_failures(status["failures"])
    if status["workers"]:
        missed = _MISSED if status["failures"]["text"] is not None else ()
        rows = [
            [entry["worker"], entry["measurements"], *(entry[kind] for kind in missed), entry["open"], entry["last"]]
            for entry in status["workers"]
        ]
        print_table(["worker", "measured", *missed, "open", "last seen"], rows, "workers")
    console.print(status["assumed"], highlight=False, markup=False)


def _deadline(status: dict[str, Any], handed: dict[str, Any] | None) -> list[str]:
    """What is used of the deadline, and what is handed over there; nothing if there is none."""
    if status.get("deadline") is None or status["done"]:
        return []
    used = f"deadline: {status['deadline_used']:g} of {status['deadline']:g} used"
    if not status["deadline_reached"]:
        return [f"{used}, {status['deadline_left']:g} left"]
    return [f"{used}: it is reached, and nothing more is asked for", *([] if handed is None else [handed["words"]])]


def _spent(status: dict[str, Any]) -> list[str]:
    """What was spent, and is expected to be; nothing if there are no costs."""
    if status["cost"] is None:
        return []
    unit, left = status.get("cost_unit"), status["cost_left"]
    more = "" if left is None or status["done"] else f"; about {cost_text(float(f'{left:.2g}'), unit)} more"
    return [f"spent: {cost_text(status['cost'], unit)}{more}"]


def _waiting(status: dict[str, Any]) -> list[str]:
    """How many results wait, if any do, and for whom."""
    count = status["waiting"]
    if not count or status["done"]:
        return []
    asks = first_names([f"{ask['name']}, asked of {ask['worker']}" for ask in status["holding"]])
    waits = "1 result waits" if count == 1 else f"{count} results wait"
    return [f"{waits} for an earlier ask of the item to be answered or given up ({asks})"]


def _print_verdict(console: Console, status: dict[str, Any]) -> None:
    """What has come out, and all that speaks against it."""
    alarm, looks = status["alarm"], status["homogeneity"]
    console.print(escape(" ".join([status["verdict"], *_choice(status["resolutions"])])), highlight=False)
    if alarm is not None:
        console.print(f"Alarm: {alarm['text']}", highlight=False, markup=False, style="yellow")
    for warning in status["alarms"]:
        text = f"{'Remark' if warning['harmless'] else 'Alarm'}: {warning['text']}"
        console.print(text, highlight=False, markup=False, style=None if warning["harmless"] else "yellow")
    if looks is not None:
        console.print(looks["text"], highlight=False, markup=False, style="yellow" if looks["mixed"] else None)
    if status["archived"] is not None:
        console.print(f"Archived since {status['archived']}: it is read-only.", highlight=False, markup=False)
    if status["failures"]["text"] is not None:
        console.print(status["failures"]["text"], highlight=False, markup=False)
    if status["doubt"] is not None:
        console.print(status["doubt"], highlight=False, markup=False, style="yellow")


_MISSED = ("failed", "expired", "late", "undone")
_MOST_ITEMS = 12


def _print_failures(failures: dict[str, Any]) -> None:
    """The items with the most asks that were missed."""
    if failures["items"]:
        rows = [
            [item["name"], item["asked"], *(item[kind] for kind in _MISSED)] for item in failures["items"][:_MOST_ITEMS]
        ]
        left = len(failures["items"]) - _MOST_ITEMS
        print_table(
            ["item", "asked", *_MISSED], rows, "asks that were missed" + (f" ({left} more items)" if left > 0 else "")
        )


def measurements_left(status: dict[str, Any]) -> str:
    """How many more are expected, in words."""
    from coterie.session.forecast import Forecast  # here: most commands do without sessions

    middle, low, high = (status[key] for key in ("forecast", "forecast_low", "forecast_high"))
    if middle is None:
        return f"{status['t']} so far; how many more are needed cannot be said yet"
    return f"{status['t']} so far, {Forecast(middle, low, high, status['t']).words}"


def _choice(resolutions: Sequence[dict[str, Any]]) -> list[str]:
    """That the resolution was chosen on the way, and what it was before; nothing if it was not."""
    if len(resolutions) < 2:
        return []
    earlier = [Resolution(resolution["alike"], resolution["apart"]).bounds for resolution in resolutions[:-1]]
    at = resolutions[-1]["chosen_at"]
    return [f"The resolution was chosen after {at} measurements; before it was {', then '.join(earlier)}."]


def _groups_called(ids: Sequence[int | None]) -> str:
    """group 2, or groups 2, 3."""
    return f"group{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def _center(center: Sequence[float] | dict[str, float]) -> str:
    if isinstance(center, dict):  # of features
        return ", ".join(f"{name} {value:.4g}" for name, value in list(center.items())[:_MOST_NUMBERS])
    shown = ", ".join(f"{value:.4g}" for value in center[:_MOST_NUMBERS])
    return shown + (", …" if len(center) > _MOST_NUMBERS else "")


def print_partial(answer: dict[str, Any], where: str) -> None:
    """What `coterie campaign partial` prints of what `Campaigns.partial` gives."""
    names = [entry["name"] for entry in answer["items"]]
    apart, alike = answer["apart"], answer["alike"]
    head = (
        f"{answer['name']} ({answer['id']}), after {answer['t']} measurements. Apart: {apart['means']}; alike: "
        f"{alike['means']}. Any of this, now or at an earlier moment, is wrong with probability at most "
        f"{answer['error']:g}."
    )
    lines = [head]
    settled, total = answer["settled"], len(names)
    lines.append(f"Certain so far: the groups of {settled} of {total} items.")
    handed = answer.get("handover")
    lines += [] if handed is None else [f"Deadline: {handed['words']}."]
    far, near = ([(names[low], names[high]) for low, high in entry["listed"]] for entry in (apart, alike))
    lines += pair_lines(far, near, (apart["count"], alike["count"]), answer["pairs"])
    print_lines(lines)
    items = sorted(answer["items"], key=lambda item: (item["group_id"] or 0, item["arm"]))
    guess = [] if handed is None else ["group"]
    rows = [
        [item["name"], item["letters"], *([_guess(item)] if guess else []), ", ".join(map(str, item["possible"])),
         item["used"]]
        for item in items
    ]  # fmt: skip
    print_letters(["item", "letters", *guess, "possible groups", "used"], rows, where)


def _guess(item: dict[str, Any]) -> str:
    """The group of an item, and that it is a guess if it is not proven."""
    if item["group_id"] is None:
        return "–"
    return f"{item['group_id']}" if item["settled"] else f"{item['group_id']} (guess, unproven)"
