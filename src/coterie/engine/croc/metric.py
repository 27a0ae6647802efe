"""The size of the noise as results show it: where each arm lies, and the units in which distances are measured.

If the noise has no known size, results come in the units of whoever measures. An *innovation* is what a result adds to
what its arm said before: (x − mean of the n results before)·√(n/(n+1)), which has the covariance of the noise whatever
the mean is. The scatter of the innovations, over their number, is Σ̂; T with T'·T = Σ̂⁻¹ turns positions into units of
the noise: the estimate, the misgrouping risk and the forecasts then work as they do for a known noise. Σ̂ is shrunk
towards its diagonal by as much as its correlations could be chance.

Where outliers are possible, results are *pulled in*: no coordinate counts for more than FAR standard deviations, with a
scale from the median of the first innovations, about a median of the arm's first results. All of this decides where to
measure and what to bet; nothing here enters the proof.
"""

from __future__ import annotations

import math

from coterie.engine.compiled import compiled
from coterie.engine.croc.family import FULL, SCALAR
from coterie.engine.croc.state import (
    ARM_SCALES,
    DEGREES,
    FAR_SHARE,
    FIRST_RESULTS,
    FROM_ZERO,
    INNOVATIONS,
    LEFT_GROUP,
    MEASURED_AT,
    METRIC_SHAPE,
    NEVER,
    PLANNED,
    WINSORISED,
    Croc,
    Work,
)
from coterie.engine.state import Floats

TRIALS = 2
"""Where a family that counts successes has the trials of a result, in its parameters."""
PULLED_IN = 3.0
"""Standard deviations beyond which a coordinate of a result counts no more."""
MEDIAN_TO_DEVIATION = 1.4826
"""Standard deviation of a Gaussian whose absolute value has the median 1."""
MOSTLY_TIES = 0.4
"""Share of equal neighbours among an arm's first results from which on a coordinate is not pulled in: of 0 and 1, whose
rarer value is no outlier, at least half are equal."""
REFRESH = 0.1
"""The metric is estimated anew when its degrees of freedom have grown by this share."""
LEAST_SHRINKAGE = 1e-6
"""So much of the diagonal in any case: a column that is a copy of another leaves the scatter singular."""
ARM_PRIOR = 4.0
"""So many results with the pooled variance go into the variance of an arm."""
SMALL_SAMPLE = 2.0
"""A variance from ν degrees of freedom is enlarged by this many ν-ths: too small a one makes the run too sure."""


@compiled
def _pulled_in(value: float, scale: float) -> float:
    """A deviation, at most PULLED_IN times the scale."""
    limit = PULLED_IN * scale
    return min(max(value, -limit), limit)


@compiled
def _median(values: Floats, n: int) -> float:
    """The median of the first n values, which are sorted by this. INOUT: values."""
    for i in range(1, n):
        value, place = values[i], i
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
    return float(0.5 * (values[(n - 1) // 2] + values[n // 2]))


@compiled
def _has_ties(s: Croc, q: int) -> bool:
    """Whether a coordinate takes few values: neighbours among arms' first results, without their last, are equal."""
    pairs, equal = 0, 0
    for m in range(s.pulls.size):
        for i in range(1, min(s.pulls[m] - 1, FIRST_RESULTS)):
            pairs += 1
            equal += s.first[m, i, q] == s.first[m, i - 1, q]
    return pairs > 0 and equal >= MOSTLY_TIES * pairs


@compiled
def _scatter_of_first(s: Croc, w: Work, n: int) -> None:
    """Scale and scatter anew from the first n innovations. OUT: s.scale, s.scatter, s.numbers[FAR_SHARE]."""
    d = s.scale.size
    far = 0.0
    for q in range(d):
        for i in range(n):
            w.sorted[i] = abs(s.innovations[i, q])
        median = MEDIAN_TO_DEVIATION * _median(w.sorted, n)
        s.scale[q] = median if median > 0.0 and not _has_ties(s, q) else math.inf  # else its tails are not known
        for i in range(n):
            far += abs(s.innovations[i, q]) > PULLED_IN * s.scale[q]
    s.numbers[FAR_SHARE] = far / max(n * d, 1)
    for q in range(d):
        for p in range(d):
            s.scatter[q, p] = 0.0
    for i in range(n):
        for q in range(d):
            mine = _pulled_in(s.innovations[i, q], s.scale[q])
            for p in range(q + 1):
                s.scatter[q, p] += mine * _pulled_in(s.innovations[i, p], s.scale[p])


@compiled
def _take_innovation(s: Croc, w: Work, arm: int, x: Floats, n: int) -> None:
    """What result number n ≥ 2 of an arm adds to what was known. INOUT: the scatter and what it is made of."""
    d = s.scale.size
    share = math.sqrt((n - 1.0) / n)
    seen = s.ints[DEGREES]
    s.ints[DEGREES] += 1
    for q in range(d):
        w.rest[q] = (x[q] - s.location[arm, q]) * share
    if s.ints[WINSORISED] == 1:
        if seen < INNOVATIONS:
            for q in range(d):
                s.innovations[seen, q] = w.rest[q]
            if seen == INNOVATIONS - 1:
                _scatter_of_first(s, w, INNOVATIONS)
            return
        far = 0.0
        for q in range(d):
            far += abs(w.rest[q]) > PULLED_IN * s.scale[q]
            w.rest[q] = _pulled_in(w.rest[q], s.scale[q])
        s.numbers[FAR_SHARE] += (far / d - s.numbers[FAR_SHARE]) / (seen + 1.0)
    for q in range(d):
        for p in range(q + 1):
            s.scatter[q, p] += w.rest[q] * w.rest[p]


@compiled
def _locate(s: Croc, w: Work, arm: int, x: Floats, n: int) -> None:
    """Where the arm lies with result number n. INOUT: s.location, s.first."""
    d = s.scale.size
    if s.ints[WINSORISED] == 1 and n <= FIRST_RESULTS:
        for q in range(d):
            s.first[arm, n - 1, q] = x[q]
        if n >= 3 and n % 2 == 1:
            for q in range(d):
                for i in range(n):
                    w.sorted[i] = s.first[arm, i, q]
                middle = _median(w.sorted, n)
                total = 0.0
                for i in range(n):
                    total += _pulled_in(s.first[arm, i, q] - middle, s.scale[q])
                s.location[arm, q] = middle + total / n
            return
    for q in range(d):
        step = x[q] - s.location[arm, q]
        if s.ints[WINSORISED] == 1 and n > 3:
            step = _pulled_in(step, s.scale[q])
        s.location[arm, q] += step / n


@compiled
def to_metric(s: Croc, position: Floats, out: Floats) -> None:
    """T·position. OUT: out."""
    for q in range(position.size):
        total = 0.0
        for p in range(q + 1):
            total += s.metric[q, p] * position[p]
        out[q] = total


@compiled
def _stabilised(successes: float, trials: float) -> float:
    """A count of successes on a scale on which its variance is about 1, whatever the rate (Anscombe)."""
    return 2.0 * math.sqrt(trials + 0.5) * math.asin(math.sqrt((successes + 0.375) / (trials + 0.75)))


@compiled
def take_position(s: Croc, w: Work, arm: int, result: Floats) -> None:
    """A result of the arm, from the common origin, whose count includes it. INOUT: location, scatter, s.means.

    Counts are taken on a scale on which their variance does not depend on the rate. OUT: w.part, the position that the
    result counts as for the center of its group, in units of the metric. Work space: w.contrast.
    """
    d, n, x = s.scale.size, s.pulls[arm], w.contrast
    for q in range(d):
        x[q] = _stabilised(result[q], w.parameters[TRIALS]) if s.ints[FROM_ZERO] == 1 else result[q]
    if n > 1:
        _take_innovation(s, w, arm, x, n)
        if s.ints[ARM_SCALES] == 1 and s.ints[MEASURED_AT] > 0:
            for q in range(d):
                along = 0.0
                for p in range(q + 1):
                    along += s.metric[q, p] * w.rest[p]
                s.squares[arm, 0] += along * along / d
            s.squares[arm, 1] += 1.0
    _locate(s, w, arm, x, n)
    for q in range(d):
        w.part[q] = -(n - 1.0) * s.means[arm, q]
    to_metric(s, s.location[arm], s.means[arm])
    for q in range(d):
        w.part[q] += n * s.means[arm, q]


@compiled
def _invert(s: Croc, w: Work, deviation: Floats) -> bool:
    """T from the correlations in w.correlation and standard deviations. OUT: s.metric. False: not positive definite."""
    d = deviation.size
    low = w.inverse
    for q in range(d):
        for p in range(q + 1):
            total = w.correlation[q, p]
            for i in range(p):
                total -= low[q, i] * low[p, i]
            if q > p:
                low[q, p] = total / low[p, p]
            elif total <= 0.0:
                return False
            else:
                low[q, q] = math.sqrt(total)
    for p in range(d):  # columns of the inverse of the lower triangle, scaled
        for q in range(p, d):
            total = 1.0 if q == p else 0.0
            for i in range(p, q):
                total -= low[q, i] * s.metric[i, p]
            s.metric[q, p] = total / low[q, q]
    for p in range(d):
        for q in range(d):
            if q < p:
                s.metric[q, p] = 0.0
            else:
                s.metric[q, p] *= deviation[p]  # its inverse; 0 where nothing varies
    return True


@compiled
def _range(s: Croc, q: int) -> float:
    """How far the arms lie apart in a coordinate: what is known of its scale while repeats show no noise in it."""
    low, high = math.inf, -math.inf
    for m in range(s.labels.size):
        if s.pulls[m] > 0:
            low, high = min(low, s.location[m, q]), max(high, s.location[m, q])
    return max(high - low, 0.0)


@compiled
def estimate_metric(s: Croc, w: Work) -> None:
    """T anew from the scatter so far. OUT: s.metric, and s.means and s.centers in its units."""
    d, degrees = s.scale.size, s.ints[DEGREES]
    if s.ints[WINSORISED] == 1 and degrees < INNOVATIONS:
        _scatter_of_first(s, w, degrees)
    s.ints[MEASURED_AT] = degrees
    enlarged = (1.0 + SMALL_SAMPLE / degrees) / degrees
    deviation, pooled, squares = w.mean, 0.0, 0.0
    for q in range(d):
        pooled += s.scatter[q, q]
    for q in range(d):
        variance = (s.scatter[q, q] if s.ints[METRIC_SHAPE] != SCALAR else pooled / d) * enlarged
        if variance <= 0.0:
            variance = _range(s, q) ** 2 / (1.0 + degrees)
        deviation[q] = 1.0 / math.sqrt(variance) if variance > 0.0 else 0.0
        w.correlation[q, q] = 1.0
        for p in range(q):
            product = s.scatter[q, q] * s.scatter[p, p]
            w.correlation[q, p] = s.scatter[q, p] / math.sqrt(product) if product > 0.0 else 0.0
            squares += 2.0 * w.correlation[q, p] ** 2
    keep = 0.0  # of the correlations: what is more than chance, 1/ν for each square
    if s.ints[METRIC_SHAPE] == FULL and squares > 0.0:
        keep = min(1.0 - d * (d - 1.0) / (degrees * squares), 1.0 - LEAST_SHRINKAGE)
    for q in range(d):
        for p in range(q):
            w.correlation[q, p] *= max(keep, 0.0)
    if not _invert(s, w, deviation):
        for q in range(d):
            for p in range(q):
                w.correlation[q, p] = 0.0
        _invert(s, w, deviation)
    for m in range(s.labels.size):
        to_metric(s, s.location[m], s.means[m])
    for k in range(s.totals.size):
        for q in range(d):
            s.centers[k, q] = 0.0
    for m in range(s.labels.size):
        for q in range(d):
            s.centers[s.labels[m], q] += s.pulls[m] * s.means[m, q]
    for k in range(s.totals.size):
        if s.totals[k] > 0.0:
            for q in range(d):
                s.centers[k, q] /= s.totals[k]
    s.ints[PLANNED] = NEVER


@compiled
def renew_metric(s: Croc, w: Work) -> bool:
    """Estimate the metric anew if its degrees of freedom have grown enough. True if it was."""
    if s.ints[DEGREES] > s.ints[MEASURED_AT] * (1.0 + REFRESH):
        estimate_metric(s, w)
        s.ints[LEFT_GROUP] = 1
        return True
    return False


@compiled
def arm_variance(s: Croc, arm: int) -> float:
    """The variance of an arm's results in units of the metric, for each coordinate, drawn towards 1 by four results."""
    return float((s.squares[arm, 0] + ARM_PRIOR) / (s.squares[arm, 1] + ARM_PRIOR))


@compiled
def raw_centers(s: Croc, w: Work, e: int) -> None:
    """Û and W of the groups of an epoch's candidate, in the units of the results. OUT: w.raw, w.totals."""
    for k in range(s.totals.size):
        w.totals[k] = 0.0
        for q in range(s.scale.size):
            w.raw[k, q] = 0.0
    for m in range(s.labels.size):
        k = s.frozen[e, m]
        w.totals[k] += s.pulls[m]
        for q in range(s.scale.size):
            w.raw[k, q] += s.sums[m, q] if s.ints[FROM_ZERO] == 1 else s.pulls[m] * s.location[m, q]
    for k in range(s.totals.size):
        for q in range(s.scale.size):
            w.raw[k, q] /= w.totals[k]
