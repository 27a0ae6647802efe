"""The bodies of requests, as OpenAPI describes them. Types are checked here; ranges and sizes by the store.

Where a value may have several types it is `Any` with a schema of its own, so that the store's message, which says what
is wrong and names the field, is the one that people read.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, NoReturn, TypeVar

from fastapi import Path, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, WithJsonSchema

from coterie.campaign.settings import LEASE_SECONDS, ON_EXPIRY
from coterie.methods import METHODS
from coterie.problem.question import GROUPS
from coterie.problem.settings import DELTA, METHOD, MOST_CONFIRM, THRESHOLD
from coterie.web.answers import Refusal
from coterie.web.value_schemas import (
    COSTS,
    FAMILIES,
    NUMBERS,
    Arm,
    ChosenResolution,
    Noise,
    Resolution,
    Seconds,
    Values,
)

Id = Annotated[str, Path(description="The campaign's id.", examples=["5f0c7c0a1c9d4b7f8e21a3d4"])]
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def _describe_methods(schema: dict[str, Any]) -> None:
    """List the methods that a campaign may use, those registered by now too."""
    offered = [method for method in METHODS.values() if not method.simulates_only]
    schema["description"] = "; ".join(f"{method.name}: {method.sentence}" for method in offered) + "."


def _describe_distance_ratio(schema: dict[str, Any]) -> None:
    needing = " and ".join(method.name for method in METHODS.values() if "distance_ratio" in method.needs)
    schema["description"] = f"r, in (0, 1], for {needing}."


class Body(BaseModel):
    """A JSON object without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class NewCampaign(Body):
    """What a campaign is created with: the settings of its run, what its numbers are called, the rules for leases."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "fruit", "n_arms": 4, "n_clusters": 2, "dim": 1, "names": ["apple", "pear", "kiwi", "fig"]},
                {"name": "machines", "n_arms": 40, "n_clusters": 3, "dim": 2, "delta": 0.01, "noise": [0.5, 2.0]},
                {"name": "pages", "n_arms": 9, "n_clusters": 2, "dim": 1, "noise": {"family": "counts", "trials": 100}},
                {
                    "name": "films",
                    "n_arms": 69,
                    "dim": 1,
                    "resolution": {"alike": 0.2, "apart": 0.8},
                    "noise": {"family": "bounded", "lo": 1, "hi": 5},
                },
            ]
        }
    )
    name: StrictStr = Field(description="What people call it.")
    n_arms: StrictInt = Field(ge=1, description="How many items there are.")
    n_clusters: Annotated[Any, WithJsonSchema({"type": ["integer", "null"], "minimum": 1})] = Field(
        default=None, description="How many groups there are; null if that is not known, with a `resolution`."
    )
    dim: Annotated[Any, WithJsonSchema({"type": ["integer", "null"], "minimum": 1})] = Field(
        default=None, description="How many numbers one measurement has; left out with `features`."
    )
    delta: Annotated[Any, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})] = Field(
        default=DELTA, description="The error probability that is allowed."
    )
    method: StrictStr = Field(default=METHOD, json_schema_extra=_describe_methods)
    threshold: StrictStr = Field(
        default=THRESHOLD, description="proven or heuristic, for methods that have both; heuristic is no proof."
    )
    noise: Noise = Field(
        default=None,
        description="What is known about the noise. null: nothing, any noise. A known noise: a standard deviation, one "
        "for each coordinate, or a covariance. Between the two, an object: "
        + "; ".join(f"{family}: {sentence}" for family, sentence in FAMILIES.items())
        + ".",
    )
    resolution: Resolution = Field(
        default=None,
        description="In place of n_clusters: which differences matter, in the units of the measurements, one number or "
        'one for each number of a measurement; for counts also rates, "2%". The number of groups is then found.',
    )
    groups: StrictStr = Field(
        default=GROUPS[0],
        description="equal: the items of a group are alike; linkage: the n_clusters groups of single linkage.",
    )
    names: list[StrictStr] | None = Field(default=None, description="The items' names.")
    distance_ratio: Annotated[Any, WithJsonSchema({"type": ["number", "null"]})] = Field(
        default=None, json_schema_extra=_describe_distance_ratio
    )
    lease_seconds: Seconds = Field(default=LEASE_SECONDS, description="How long a worker may take.")
    on_expiry: StrictStr = Field(
        default=ON_EXPIRY[0], description=f"{' or '.join(ON_EXPIRY)}: what happens to asks that expire."
    )
    pass_on: Annotated[Any, WithJsonSchema({"type": ["number", "null"], "minimum": 0})] = Field(
        default=None,
        description="An ask that everybody waits for is asked of somebody else too after so many times the median of "
        "the times that answers took. null: 2, and 0 where on_expiry is wait; 0: never.",
    )
    value_names: list[StrictStr] | None = Field(
        default=None, description="What the numbers of a measurement are called; null: v0, v1, …"
    )
    costs: Annotated[Any, WithJsonSchema({"anyOf": [{"type": "null"}, NUMBERS]})] = Field(
        default=None, description="What a measurement of each item costs, if that differs: a positive number an item."
    )
    cost_unit: StrictStr | None = Field(default=None, description="What the unit of the costs is called.")
    confirm: Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": MOST_CONFIRM})] = Field(
        default=0.0,
        description="Go on after the proof for so many measurements more, as a share of those that it took (0.5: half "
        "as many), to see whether a group hides two.",
    )
    blocks: StrictStr | None = Field(
        default=None,
        description="offset: all results of a block (a plate, a day, a rater) may be shifted together; drawn: every "
        "block is a question drawn afresh; null: results do not depend on where they are measured.",
    )
    strict_blocks: StrictBool = Field(
        default=False, description="Asks that were decided together in a block and not all measured count for nothing."
    )
    features: Annotated[
        Any, WithJsonSchema({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}, {"type": "array"}]})
    ] = Field(
        default=None,
        description="Where every look at an item gives one of many features, or some: their names, or how many. An ask "
        "then says the item and the feature, and items are equal if they are in all features.",
    )
    feature_costs: Annotated[Any, WithJsonSchema(COSTS)] = Field(
        default=None, description="What each feature costs alone: in order, or by name; null: not alone."
    )
    panels: Annotated[Any, WithJsonSchema({"type": ["object", "null"]})] = Field(
        default=None, description='Features that one look gives together, by name: {"blood": ["iron", "zinc"]}.'
    )
    panel_costs: Annotated[Any, WithJsonSchema(COSTS)] = Field(default=None, description="What each panel costs.")
    holes: StrictStr | None = Field(
        default=None,
        description='"at random": results may lack numbers, whatever their values, and count where they can.',
    )
    deadline: Annotated[Any, WithJsonSchema({"type": ["number", "null"], "exclusiveMinimum": 0})] = Field(
        default=None,
        description="All that may be measured: a number of measurements or, with `costs`, what they may cost. Then "
        "nothing is asked for any more: `partial` has what is proven, and how good the guess for the rest is.",
    )


class AskBody(Body):
    """Who asks for how many items."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"worker": "bench 1", "n": 1}]})
    worker: StrictStr = Field(description="Who measures.")
    n: StrictInt = Field(default=1, ge=1, description="How many items.")
    block: StrictStr | None = Field(default=None, description="With blocks: the plate, day, rater … of the results.")
    room: StrictInt | None = Field(
        default=None,
        ge=1,
        description="How many results still fit into the block, open asks of this worker included; null: n, or any "
        "number where n is 1.",
    )
    among: list[StrictStr | StrictInt] | None = Field(
        default=None, description="The items that can be measured in the block; null: all."
    )


class Measurement(Body):
    """One result."""

    id: StrictStr = Field(description="Made up by the client; the same id twice counts once.")
    arm: Arm = Field(description="The item: its number or its name.")
    values: Values = Field(
        description="The numbers measured; a single number if there is only one. With features: those of the panel in "
        'its order, or by feature, {"iron": 3.1}; null is a hole.'
    )
    feature: StrictStr | None = Field(
        default=None, description="With features: the feature or panel, where neither lease nor values say so."
    )
    lease: StrictStr | None = Field(default=None, description="The lease that it answers.")
    worker: StrictStr | None = Field(default=None, description="Who measured, if there is no lease to tell.")
    block: StrictStr | None = Field(default=None, description="The block that it was measured in: that of the ask.")


class TellBody(Body):
    """Results, all or nothing."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"measurements": [{"id": "2026-01-31/1", "arm": 0, "values": [1.25]}]}]}
    )
    measurements: list[Measurement]
    confirm: StrictBool | None = Field(
        default=None,
        description="false: a value far from what its item gave before is refused (409, far_off), so that a person can "
        "be asked; true, or left out: it is taken in, with a warning.",
    )


class CorrectBody(Body):
    """A value that was told wrong, and what was measured. The old value stays on record."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"measurement": "2026-01-31/1", "values": [4.86], "reason": "typed 486"}]}
    )
    measurement: StrictStr = Field(description="The id of the measurement.")
    values: Values
    reason: StrictStr = Field(description="Why the value was wrong: the certificate says so.")
    by: StrictStr = Field(default="", description="Who says so.")
    id: StrictStr | None = Field(default=None, description="The correction's own id: sent twice, it is made once.")


class FailBody(Body):
    """A measurement that will not come."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease": "9f2c…", "reason": "the sample broke"}]})
    lease: StrictStr
    reason: StrictStr = ""


class ResolutionBody(Body):
    """Other `alike` and `apart`, chosen after looking at the results."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"resolution": {"alike": 0.3, "apart": 1.0}}]})
    resolution: ChosenResolution = Field(
        description="In the units of the measurements. `norm` and `claim` are those of the campaign, or left out."
    )


class _Revision(Body):
    """Who revises, and why: kept on record."""

    by: StrictStr | None = None
    reason: StrictStr | None = None


class ItemsBody(_Revision):
    """Items that join."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"add": ["C7", "C8"], "reason": "a new batch"}]})
    add: list[StrictStr] | StrictInt = Field(description="Their names; how many, where items have no names.")
    costs: list[StrictFloat | StrictInt] | None = Field(
        default=None, description="What one measurement of each costs, where items have costs."
    )


class RetireBody(_Revision):
    """Items that are retired."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"retire": ["B2"], "reason": "it broke"}]})
    retire: list[StrictStr | StrictInt] = Field(description="Names, or numbers from 0.")


class ClustersBody(_Revision):
    """More groups."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"n_clusters": 4}]})
    n_clusters: StrictInt = Field(description="More than before, fewer than items.")


class DeltaBody(_Revision):
    """A smaller error probability."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"delta": 0.01}]})
    delta: StrictFloat | StrictInt = Field(description="Smaller than before.")


class DeadlineBody(_Revision):
    """Another deadline."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"deadline": 500, "reason": "a day more"}]})
    deadline: StrictFloat | StrictInt = Field(description="Not below what is spent, open asks included.")


class UndoBody(Body):
    """An ask that is given back unmeasured."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease": "9f2c…", "reason": "asked by mistake"}]})
    lease: StrictStr
    reason: StrictStr = ""


class CloseBlockBody(Body):
    """A block in which nothing more is measured."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"block": "plate 7"}]})
    block: StrictStr


class ArchiveBody(Body):
    """Whether the campaign is put away."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"archived": True}]})
    archived: StrictBool


class LeaseTimeBody(Body):
    """How long a worker may take."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease_seconds": 7200}]})
    lease_seconds: Seconds = Field(description="Seconds, from the next ask on.")


_Body = TypeVar("_Body", bound=Body)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON knows")


async def read_body(request: Request, kind: type[_Body]) -> _Body:
    """The JSON object that a request carries."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        received = f"got {media[:80]!r}" if media else "got none"
        raise Refusal(
            415, "not_json", f"the body must be JSON: send the header Content-Type: application/json, {received}"
        )
    try:
        content = json.loads((await request.body()).decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise Refusal(400, "bad_json", f"the body is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Refusal(400, "bad_json", f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except ValueError as error:  # NaN, or a number with thousands of digits
        raise Refusal(400, "bad_json", f"the body is not JSON that can be read: {str(error)[:200]}") from None
    except RecursionError:
        raise Refusal(400, "bad_json", "the body is nested too deeply") from None
    return kind.model_validate(content)


def request_body(kind: type[Body]) -> dict[str, Any]:
    """The description of a body for OpenAPI; `body_schemas` has what it refers to."""
    schema = {"$ref": f"#/components/schemas/{kind.__name__}"}
    examples: list[Any] = kind.model_json_schema()["examples"]
    content = {"schema": schema, "examples": {f"example {i + 1}": {"value": given} for i, given in enumerate(examples)}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def body_schemas() -> dict[str, Any]:
    """The schemas of all bodies."""
    schemas: dict[str, Any] = {}
    for kind in (*(kind for kind in Body.__subclasses__() if kind is not _Revision), *_Revision.__subclasses__()):
        schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[kind.__name__] = schema
    return schemas
