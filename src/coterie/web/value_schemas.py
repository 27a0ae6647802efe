"""What the values of a request may look like, as OpenAPI describes it, where they may have several types.

They are taken as they come: the store checks them, so that its message, which says what is wrong and names the field,
is the one that people read.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from coterie.problem.families import SHAPES, STATEMENTS
from coterie.problem.question import CLAIMS, NORMS

NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
Seconds = Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]  # the store says what is wrong
_RESULT = {"anyOf": [{"type": "number"}, {"type": "boolean"}]}  # true is 1, false is 0
_BY_FEATURE = {"type": "object", "additionalProperties": {"anyOf": [*_RESULT["anyOf"], {"type": "null"}]}}
Values = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                *_RESULT["anyOf"],
                {"type": "array", "items": {"anyOf": [*_RESULT["anyOf"], {"type": "null"}]}, "minItems": 1},
                _BY_FEATURE,
            ]
        }
    ),
]
COSTS = {"anyOf": [{"type": "null"}, {"type": "array"}, {"type": "object"}]}
Arm = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]})]
Noise = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "null"},
                {"type": "number", "exclusiveMinimum": 0},
                NUMBERS,
                {"type": "array", "items": NUMBERS, "minItems": 1},
                {
                    "type": "object",
                    "required": ["family"],
                    "properties": {
                        "family": {"type": "string", "enum": [*STATEMENTS, "exactly"]},
                        "shape": {
                            "anyOf": [{"type": "string", "enum": list(SHAPES)}, {"type": "boolean"}],
                            "description": "Of gaussian, in words; of any, whether spread and shape count too.",
                        },
                        "trials": {"type": "integer", "minimum": 1, "description": "Of counts."},
                        "lo": {"anyOf": [{"type": "number"}, NUMBERS], "description": "Of bounded."},
                        "hi": {"anyOf": [{"type": "number"}, NUMBERS], "description": "Of bounded."},
                        "covariance": {
                            "anyOf": [{"type": "number"}, NUMBERS, {"type": "array", "items": NUMBERS}],
                            "description": "Of at-most: a standard deviation, one for each number, or a covariance.",
                        },
                        "noise": {
                            "anyOf": [{"type": "number"}, NUMBERS, {"type": "array", "items": NUMBERS}],
                            "description": "Of exactly: a standard deviation, one for each number, or a covariance.",
                        },
                    },
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
_RATE = {"type": "string", "pattern": r"^[0-9.]+%$"}
_BOUND = {"anyOf": [{"type": "number", "minimum": 0}, NUMBERS, _RATE, {"type": "array", "items": _RATE, "minItems": 1}]}
_RESOLUTION = {
    "type": "object",
    "required": ["alike", "apart"],
    "properties": {
        "alike": _BOUND | {"description": "Differences below this do not matter."},
        "apart": _BOUND | {"description": "Differences above this do; larger than `alike`."},
        "norm": {
            "type": "string",
            "enum": list(NORMS),
            "description": "For each number of a measurement, or for the distance of all of them.",
        },
        "claim": {
            "type": "string",
            "enum": list(CLAIMS),
            "description": "Items are near the reference of their group, or any two of a group are.",
        },
    },
    "additionalProperties": False,
}
Resolution = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "null"}, _RESOLUTION]})]
ChosenResolution = Annotated[Any, WithJsonSchema(_RESOLUTION)]
FAMILIES = {
    "any": "as null; with `shape` true, groups that differ in spread or shape are looked for too",
    "gaussian": "Gaussian with an unknown covariance that all items share, of the `shape` full, diagonal or scalar",
    "counts": "each number is a count of successes out of `trials`, 1 if left out",
    "poisson": "each number is a Poisson count of events, without a number of trials",
    "exponential": "each number is an exponential waiting time, above 0",
    "bounded": "all numbers lie between `lo` and `hi`",
    "at-most": "the covariance is at most `covariance`",
    "symmetric": "symmetric about the mean of each item",
    "exactly": "a known `noise` that is Gaussian with exactly this covariance, and not less",
}
