"""What is run for each table and figure: a cell is one method on one instance, for all its δ and thresholds.

Cells are named by what they run, not by the table that shows them: table1 and table2 share BOC on Iris.

Beside them: what tables, instances, methods and δ are called in the report, and which colour a method has in pictures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from coterie.methods import method_named
from coterie.methods.trials import Plan
from coterie.paper import datasets
from coterie.paper.agreement import DELTAS, MNIST_DELTA, MNIST_DIMS, TRIALS
from coterie.problem.instance import Instance
from coterie.simulate.bulk import plan_for

PARTS = ("table1", "table2", "table3", "figure3")
"""The tables and the figure in the order in which the paper's pages have them, the appendix last but one."""

BOTH = ("heuristic", "proven")

FIGURE_POWERS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 250, 300)
"""figure3: δ = 10 to minus these powers. One trajectory serves them all, but for CROC, whose sampling looks at δ."""

CROC_POWERS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 300)

PAPERS_METHOD = "boc"
"""The method that the paper proposes: what all others are compared with."""

READINGS = ("implied", "described")
"""table3: at the scale that the printed numbers imply, and as the text describes it (D* = 2)."""

DESCRIBED_TRIALS = 32
PROVEN_TRIALS = {"implied": 8, "described": 4}
"""table3 with the proven threshold takes some 15 times the pulls, and its stopping time hardly varies."""

IMPLIED_DRAW = 25
IMPLIED_HARDNESS = 0.5312
"""The draw of 500 images and the D* at d = 400 that come nearest to the ten printed numbers: `make bench
BENCH=draws` looks through 1500 draws. One scale serves all five d."""

TITLES = {
    "table1": "Table 1: Iris and Yeast, BOC and Uniform (table_real)",
    "table2": "Table 2: forced against linear exploration (table_linear)",
    "table3": "Table 3: MNIST (the paper's label table1, in its appendix)",
    "figure3": "Figure 3: the synthetic instances (figure_main)",
}

INSTANCE_NAMES = {
    "iris": "Iris",
    "yeast": "Yeast",
    "challenging-rescaled": "challenging, rescaled to D* = 2",
    "easy": "easy",
    "moderate": "moderate",
    "challenging": "challenging",
}

READING_NAMES = {
    "implied": "at the scale that the printed numbers imply",
    "described": "as the text describes it: rescaled to D* = 2",
}
"""The two readings of table3."""

METHOD_NAMES = {
    ("boc", "heuristic"): "BOC, heuristic β̃",
    ("boc", "proven"): "BOC, proven β",
    ("boc-linear", "heuristic"): "BOC with linear exploration, β̃",
    ("uniform", "heuristic"): "Uniform, β̃",
    ("uniform", "proven"): "Uniform, β",
    ("oracle", "heuristic"): "Oracle, β̃",
    ("oracle", "proven"): "Oracle, β",
    ("croc", "certificate"): "CROC (proven)",
}
"""Method and threshold, in the order in which tables show them. A method that certifies has no threshold."""

CURVE_NAMES = {"boc": "BOC", "uniform": "Uniform", "oracle": "Oracle", "croc": "CROC (always proven)"}
"""Where the title of the picture says the threshold."""

STYLE_NUMBERS = {"boc": 0, "uniform": 1, "oracle": 2, "croc": 3, "boc-linear": 4}
"""A method has one colour and one marker in all pictures: those of this number in `coterie.plot.canvas`."""


@dataclass(frozen=True)
class Cell:
    """One method on one instance."""

    instance: str
    method: str
    kinds: tuple[str, ...]
    deltas: tuple[float, ...]
    trials: int

    @property
    def name(self) -> str:
        """Also the name of its file."""
        proven = "-proven" if self.kinds == ("proven",) and method_named(self.method).has_thresholds else ""
        figure = "-figure" if len(self.deltas) not in (1, len(DELTAS)) or self.deltas[-1] < DELTAS[-1] else ""
        return f"{self.instance}-{self.method}{proven}{figure}"

    def threshold_shown(self, kind: str) -> str:
        """The threshold of a column: one of its kinds or, of a method that certifies, "certificate"."""
        return "certificate" if method_named(self.method).certifies else kind

    def plan(self) -> Plan:
        """The plan of its trials."""
        instance = instance_named(self.instance)
        ratio = datasets.distance_ratio(instance) if "distance_ratio" in method_named(self.method).needs else None
        return plan_for(instance, self.method, self.deltas, self.kinds, None, ratio)


@cache
def instance_named(name: str) -> Instance:
    """The instances of the experiments by name, rescaled as in the paper."""
    kind, *more = name.split("-")
    if kind == "iris":
        return datasets.iris().with_hardness(2.0)
    if kind == "yeast":
        return datasets.yeast().with_hardness(2.0)
    if kind == "mnist":
        dim, reading = int(more[0]), more[1]
        if reading == "described":
            return datasets.mnist(dim).with_hardness(2.0)
        return _implied(dim)
    return datasets.synthetic(kind).with_hardness(2.0) if more == ["rescaled"] else datasets.synthetic(kind)


def _implied(dim: int) -> Instance:
    """One fixed scale for every d: that at which D* = 0.5312 with 400 components."""
    from coterie.evidence.allocation import hardness

    widest = hardness(datasets.mnist(MNIST_DIMS[-1], seed=IMPLIED_DRAW, pca_of="all"))
    own = datasets.mnist(dim, seed=IMPLIED_DRAW, pca_of="all")
    return Instance(own.labels, own.centers * (widest / IMPLIED_HARDNESS) ** 0.5)


def mnist_name(dim: int, reading: str) -> str:
    """The name of an MNIST instance."""
    return f"mnist-{dim}-{reading}"


def cells_of(part: str, trials: int | None = None) -> list[Cell]:
    """The cells of a table or figure; `trials` None: as many as the paper, fewer where it would take hours."""
    full = TRIALS if trials is None else trials
    if part == "table1":
        return [
            Cell(name, method, kinds, DELTAS, full)
            for name in ("iris", "yeast")
            for method, kinds in (("boc", BOTH), ("uniform", ("heuristic",)), ("croc", ("proven",)))
        ]
    if part == "table2":
        return [
            Cell(name, method, kinds, DELTAS, full)
            for name in ("challenging-rescaled", "iris")
            for method, kinds in (("boc", BOTH), ("boc-linear", ("heuristic",)), ("croc", ("proven",)))
        ]
    if part == "table3":
        return [cell for reading in READINGS for cell in _mnist_cells(reading, trials)]
    if part == "figure3":
        return [
            Cell(name, method, kinds, tuple(10.0**-power for power in powers), full)
            for name in ("easy", "moderate", "challenging")
            for method, kinds, powers in (
                ("boc", BOTH, FIGURE_POWERS),
                ("uniform", BOTH, FIGURE_POWERS),
                ("oracle", BOTH, FIGURE_POWERS),
                ("croc", ("proven",), CROC_POWERS),
            )
        ]
    raise ValueError(f"unknown table or figure {part!r}: choose from {', '.join((*PARTS, 'all'))}")


def _mnist_cells(reading: str, trials: int | None) -> list[Cell]:
    full = trials or (TRIALS if reading == "implied" else DESCRIBED_TRIALS)
    proven = min(full, PROVEN_TRIALS[reading])
    return [
        Cell(mnist_name(dim, reading), method, kinds, (MNIST_DELTA,), count)
        for dim in MNIST_DIMS
        for method, kinds, count in (
            ("boc", ("heuristic",), full),
            ("uniform", ("heuristic",), full),
            ("croc", ("proven",), full),
            ("boc", ("proven",), proven),
        )
    ]


def instance_name(key: str) -> str:
    """What people call an instance."""
    if key.startswith("mnist"):
        _, dim, reading = key.split("-")
        return f"MNIST d = {dim}, " + ("implied scale" if reading == "implied" else "as described, D* = 2")
    return INSTANCE_NAMES[key]


def power(delta: float) -> str:
    """A power of ten without a leading zero in its exponent: 1e-5, not 1e-05."""
    digits, _, exponent = f"{delta:.0e}".partition("e")
    return f"{digits}e{int(exponent)}"
