"""What tables, instances, methods and δ are called in the report, and which colour a method has in its pictures."""

from __future__ import annotations

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
