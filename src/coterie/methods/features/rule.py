"""The sampling rule as one course of asks: search, cut, better features, explore, freeze, prove (docs/FEATURES.md)."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from coterie.methods.features.epoch import Epoch, compose_asks
from coterie.methods.features.grouping import Groups, cut_block, farthest_groups
from coterie.methods.features.measured import FeatureResults
from coterie.methods.features.search import Ask, Asking, BetterFeatures, Constants, Prices, Search
from coterie.problem.checks import IntArray
from coterie.problem.features import Features


class Rule:
    """Where to measure. `course` gives lists of asks, and goes on when all of a list are answered."""

    def __init__(
        self,
        n_items: int,
        n_groups: int,
        measured: FeatureResults,
        features: Features,
        prices: Prices,
        rng: np.random.Generator,
        constants: Constants,
    ) -> None:
        self.measured, self.features, self.prices, self.constants = measured, features, prices, constants
        self._rng = rng
        block: IntArray = np.zeros(n_items, dtype=np.int64)
        self.groups = Groups(measured, prices, block, n_groups, constants)
        self.search = Search(measured, features, prices, rng, constants)
        self._better = BetterFeatures(measured, prices, rng, constants)

    @property
    def n_blocks(self) -> int:
        """How many blocks there are so far."""
        return int(self.groups.block.max()) + 1

    def course(
        self, freeze: Callable[[], Epoch], begin_round: Callable[[list[Ask]], None], epoch: Epoch | None
    ) -> Asking:
        """All asks, in order, until a candidate is proven. `epoch`: the one that is being tested already."""
        groups = self.groups
        undoings, searching = 0, True
        while undoings < self.constants.undoings and searching:
            while searching and self.n_blocks < groups.n_groups:
                searching = yield from self._find()
            if not searching:
                break
            if epoch is None:
                yield from self._better_features()
            failures = 0
            while failures < self.constants.patience:
                if epoch is None:
                    if not (yield from groups.explore()):
                        break
                    yield from self._better_features()
                    epoch = freeze()
                yield from self._prove(epoch, begin_round)
                if epoch.proven:
                    return
                epoch = None
                failures += 1
            self._join()
            undoings += 1
        yield from self._sweep(freeze, begin_round)

    def _sweep(self, freeze: Callable[[], Epoch], begin_round: Callable[[list[Ask]], None]) -> Asking:
        """Measure everything, twice as often each time, and freeze the groups that the means form: a course that ends
        whatever the search has missed (docs/FEATURES.md, section 5)."""
        groups, count = self.groups, 1
        while True:
            for panel in range(self.features.n_panels):
                yield [(item, panel, count) for item in range(groups.block.size)]
            count *= 2
            block, gaps = farthest_groups(self.measured, self.features.dim, groups.n_groups)
            if not gaps:
                continue
            groups.block, groups.gaps = block, gaps
            yield from groups.fill()
            epoch = freeze()
            yield from self._prove(epoch, begin_round, leave=False)
            if epoch.proven:
                return

    def resume(self, epoch: Epoch) -> None:
        """Take over the groups of a recorded freeze, and its features, as far apart as the results have the groups."""
        groups = self.groups
        groups.block = epoch.labels.copy()
        groups.gaps = {bet["feature"]: 0.0 for bet in epoch.frozen["features"]}
        spreads = np.ptp(groups.centers().means, axis=0)
        groups.gaps = dict(zip(groups.gaps, (0.5 * np.maximum(spreads, 0.1)).tolist(), strict=True))

    def _find(self) -> Generator[list[Ask], None, bool]:
        """Cut a block on a feature on which two of its items differ; False if the search has cost too much."""
        groups, search = self.groups, self.search
        lead = yield from search.run(groups.block)
        if lead is None:
            return False
        label = int(groups.block[lead.first])
        members = np.flatnonzero(groups.block == label)
        barred = {feature for of_label, feature in search.barred if of_label == label}
        lead = yield from self._better.than(lead, members.size, barred)
        ends = [self.measured.cell(item, lead.feature)[1] for item in (lead.first, lead.second)]
        most = groups.n_groups - self.n_blocks + 1
        cut = yield from cut_block(self.measured, self.prices, members, lead, (ends[0], ends[1]), most, self.constants)
        if cut is None:
            search.barred.add((label, lead.feature))
            return True
        block, new = groups.block.copy(), self.n_blocks
        for part in np.unique(cut.labels)[1:]:
            block[members[cut.labels == part]] = new
            new += 1
        groups.block = block
        groups.note_gap(lead.feature, cut.gap)
        return True

    def _better_features(self) -> Asking:
        """Features on which the two groups that cost most to tell apart differ more, while looking pays."""
        groups = self.groups
        yield from groups.fill()
        sizes = np.bincount(groups.block, minlength=groups.n_groups)
        while not groups.collapsed():  # two groups that are one differ nowhere, and looking would pay for ever
            rates = groups.rates().max(axis=2)
            np.fill_diagonal(rates, np.inf)
            k = int((8.0 / rates.min(axis=1) * sizes).argmax())
            other = int(rates[k].argmin())
            users = sizes[k] + (sizes[other] if rates[other].argmin() == k else 0)
            scale, pay = self._better.worth(float(rates[k, other]), float(users))
            if pay < 1.0:
                return
            feature = self.prices.draw(self._rng)
            if feature in groups.gaps:
                self._better.in_vain(scale)
                continue
            sides = np.flatnonzero(groups.block == k), np.flatnonzero(groups.block == other)
            gap = yield from self._better.compare(*sides, feature, scale)
            if gap is not None:
                groups.note_gap(feature, min(gap, 1.5 * scale))
                yield from groups.fill()

    def _prove(self, epoch: Epoch, begin_round: Callable[[list[Ask]], None], leave: bool = True) -> Asking:
        """Rounds until all tests are met, or the bets prove poor; or, if it may leave, the estimate is another one."""
        groups = self.groups
        cost, most = 0.0, self.constants.late * self._expected(epoch)
        while not epoch.proven:
            asks = compose_asks(groups, epoch)
            price = self.prices.total(asks)
            if price > most:  # the groups no longer differ where they seemed to: such a round might never end
                return
            begin_round(asks)
            cost += price
            yield []
            if cost > most:
                return
            if leave:
                logs, _ = groups.margins()
                if float(groups.gap_of(logs).min()) < -1.0 or groups.collapsed():
                    return

    def _expected(self, epoch: Epoch) -> float:
        """What the proof is expected to cost."""
        groups = self.groups
        rates = groups.rates().max(axis=2)
        np.fill_diagonal(rates, np.inf)
        counts = np.maximum(1.0, self.constants.forecast * (epoch.level + 2.0) / rates.min(axis=1)[epoch.labels])
        mean = float(np.mean([self.prices.of_feature(feature) for feature in groups.features]))
        return float(counts.sum() + 10.0) * mean

    def _join(self) -> None:
        """Two groups are one: forget the features that tell no groups apart any more, and search on."""
        groups = self.groups
        k, other = sorted(groups.collapsed() or groups.closest())
        block = groups.block.copy()
        block[block == other] = k
        block[block > other] -= 1
        groups.block = block
        self.search.barred.clear()
        means, _ = groups.centers()
        for place, feature in enumerate(groups.features):
            spread = float(np.ptp(means[: self.n_blocks, place]))
            if spread**2 < self.constants.collapse * groups.gaps[feature] ** 2:
                del groups.gaps[feature]
                self.search.barred.update((label, feature) for label in range(groups.n_groups))
