"""One run of the reference: asks, results, and the order of decisions (docs/CROC.md, sections 7 and 8)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coterie.problem.checks import FloatArray, check_arm, check_measurement
from coterie.problem.partition import same_partition
from tests.oracles.croc import rule
from tests.oracles.croc.epochs import Epoch, Test, arms_of, level_of
from tests.oracles.croc.forecasts import Forecast
from tests.oracles.croc.pairs import pair_evidence
from tests.oracles.croc.partitions import estimated, ordered_sum, squared
from tests.oracles.croc.pulls import Pulls
from tests.oracles.croc.state import EXPLORE, FIRST_PASS, NEVER, PAIRS, ROUNDS


class ReferenceCroc(Pulls):
    """`ask` says which arm to measure next, `tell` takes in a result; any number of asks may be open.

    `freezes` are the epochs so far, `rounds` the rounds, `alarm` K + 1 arms that refute K, `by` how it was proven.
    """

    # Asks and results (section 8).

    def ask(self) -> int | None:
        """The arm to measure next, with an open ask; None if the groups are proven."""
        of_round, arm = self._next()
        if arm < 0:
            self._plan_if_due(outside=False)
            of_round, arm = self._next()
        if arm < 0 and not self.done:  # rounds are open, and all of their asks are out
            self._plan()
            of_round, arm = self._next()
        if arm < 0:
            return None
        self._committed[arm] += 1
        self._open[arm].append(of_round)
        return arm

    def tell(self, arm: int, x: Any) -> None:
        """A result: of the oldest open ask of its arm or, if there is none, one that nobody asked for."""
        arm, value = check_arm(arm, self.n_arms), check_measurement(x, self.dim)
        if self.done:
            return
        if self._open[arm]:
            of_round = self._open[arm].popleft()
        else:
            of_round = 0
            self._committed[arm] += 1
            self._queue.clear()
        self._observe(arm, value, of_round)
        self._plan_if_due(outside=of_round == 0)

    def forget(self, arm: int) -> None:
        """Give up the oldest open ask of an arm; a round asks for it again."""
        if not self._open[check_arm(arm, self.n_arms)]:
            raise ValueError(f"arm {arm} has no open ask to give up")
        of_round = self._open[arm].popleft()
        self._committed[arm] -= 1
        if of_round > 0:
            self.rounds[of_round - 1].unasked[arm] += 1

    def _next(self) -> tuple[int, int]:
        """The round and the arm of the next ask; arm −1 if all that was planned is asked for, or all is proven."""
        if self.done:
            return 0, -1
        if self._mode == FIRST_PASS:
            seen = self._stacks.pulls.min() > 0
            return 0, -1 if seen else self._least_pulled(range(self.n_arms))
        of_round, arm = self._rounds.next_ask()
        return of_round, self._queue.popleft() if arm < 0 and self._queue else arm

    def _plan_if_due(self, outside: bool) -> None:
        """Plan when nothing planned is left; while rounds are open, only see whether the groups are proven."""
        if self.done or self._stacks.pulls.min() == 0:
            return
        if not self._rounds.open:
            if not self._queue:
                self._plan()
        elif outside or self._closed:
            self._see_proven()

    def _observe(self, arm: int, value: FloatArray, of_round: int) -> None:
        x = self._stacks.add(arm, value)
        self.t += 1
        if arm not in self._touched:
            self._touched.append(arm)
        if of_round > 0:
            self.rounds[of_round - 1].sums[arm] += x
            self.rounds[of_round - 1].left -= 1
        if self._guess is not None:
            guess, home = self._guess, self._guess.labels[arm]
            guess.totals[home] += 1.0
            guess.centers[home] += (x - guess.centers[home]) / guess.totals[home]
            if np.argmin(squared(self._stacks.mean(arm) - guess.centers)) != home:
                self._left_group = True
            self._pairs.read_arm(arm, guess.labels)
            if self._pairs.leads[home] == arm:
                self._pairs.read_lead(int(home), guess.labels)
        if of_round > 0 and self.rounds[of_round - 1].left == 0 and self._rounds.close(self._remembered):
            self._closed = True

    # The order of decisions (section 7).

    def _plan(self) -> None:
        self._queue.clear()
        self._closed = False
        self._renew()
        if not self._go_on():
            self._planned_at = self.t
            self._raise_alarm()
            self._decide()
            if not self.done:
                self._candidates = [m for m in range(self.n_arms) if self._is_candidate(m)]
                if self._mode == EXPLORE or (self._mode == PAIRS and not self._greedy()):
                    self._explore()
        self._touched = []

    def _is_candidate(self, m: int) -> bool:
        if self._mode == EXPLORE:
            near = self._risk.margin[m] < rule.MARGIN_CAP + rule.MARGIN_DRIFT
            return near or self._stacks.count(m) < self._floor
        return self._mode == PAIRS and bool(self._unsettled(m))

    def _renew(self) -> None:
        """Step 1: the estimate if it is due, then the leads and their pairs."""
        first, since = self._guess is None, self.t - self._estimated_at
        work = self.n_arms * self.n_clusters * self.dim // rule.PATIENCE_WORK
        due = since >= max(1, self.n_arms // rule.ESTIMATE_ARMS, min(self.t // rule.ESTIMATE_RESULTS, work))
        moved: list[int] = []
        if first or due or (self._left_group and since >= self._patience):
            moved = self._estimate()
            if moved:
                self._planned_at = NEVER
        elif self._left_group:
            points, pulls = self._stacks.means, self._stacks.pulls
            moved = [m for m in self._touched if self._now.move(m, points, pulls)]
            if moved and self._mode == PAIRS:
                self._planned_at = NEVER
        if moved:
            self._changed_at = self.t
        self._left_group = False
        self._choose_leads()
        if not first:
            for m in moved:
                self._pairs.read_arm(m, self._now.labels)

    def _estimate(self) -> list[int]:
        """Estimate anew; returns the arms that changed their group."""
        before = self._guess
        wait = min(self.t // rule.STARTS_RESULTS, self.n_arms**2 // rule.STARTS_WORK)
        all_starts = before is None or self.t - self._all_starts_at >= wait
        if all_starts:
            self._all_starts_at = self.t
        now = estimated(self._stacks.means, self._stacks.pulls, self.n_clusters, before, all_starts)
        self._guess, self._estimated_at = now, self.t
        return [m for m in range(self.n_arms) if before is None or before.labels[m] != now.labels[m]]

    def _choose_leads(self) -> None:
        """A lead stays while it is in its group; else the most pulled arm, ties to the one nearest the center."""
        labels = self._now.labels
        for k in range(self.n_clusters):
            if self._pairs.leads[k] >= 0 and labels[self._pairs.leads[k]] == k:
                continue
            best, away = -1, 0.0
            for m in np.flatnonzero(labels == k).tolist():
                gap = float(squared(self._stacks.mean(m) - self._now.centers[k]))
                worth = self._stacks.count(m) / self._prices.unit[m]
                most = 0.0 if best < 0 else self._stacks.count(best) / self._prices.unit[best]
                more, same = worth > most, worth == most
                if more or (same and gap < away * (1.0 - rule.LEAD_TIE)):
                    best, away = m, gap
            self._pairs.replace_lead(k, best, labels)
            self._planned_at = NEVER

    def _raise_alarm(self) -> None:
        """Step 2: K leads and an arm, all settled against one another, refute K (section 10)."""
        leads = self._pairs.leads
        if self.alarm is not None or any(self._unsettled(lead) for lead in leads):
            return
        for m, home in enumerate(self._now.labels.tolist()):
            if m != leads[home] and not self._unsettled(m):
                self._pairs.read(m, home)
                if self._pairs.settled[m, home]:
                    self.alarm = (*leads, m)
                    return

    def _pairs_done(self) -> bool:
        """The condition of Lemma 3; after an alarm pairs prove nothing."""
        return self.alarm is None and not any(self._unsettled(m) for m in range(self.n_arms))

    def _decide(self) -> None:
        """Steps 3 to 7: what the next pulls are for, or that the groups are proven."""
        if self._pairs_done():
            return self._prove("pairs")
        forecast = Forecast(self._stacks, self._now, self._pairs, self._prices)
        epoch, risk, rival = self._find_epoch(), self._risk.look(self._now), math.inf
        if epoch is not None:
            unmet = self._unmet(epoch)
            if not unmet:
                return self._prove("epoch")
            rival = self._prices.of(sorted(arms_of(unmet)))
        elif risk < rule.LARGEST_RISK:
            rival = forecast.cost_of_freeze(level_of(len(self.freezes), self._log_inverse_delta))
        may_be_greedy = self.alarm is None and self._greedy_spent <= self._greedy_limit
        if may_be_greedy and (epoch is not None or risk < rule.LARGEST_RISK):
            needed = forecast.cost_of_pairs(rival + 1.0)
            if needed <= rival:
                if self._greedy_limit == 0.0:
                    self._greedy_limit = rule.GREEDY_FACTOR * needed + rule.GREEDY_EXTRA
                self._mode = PAIRS
                return None
        self._mode = EXPLORE
        if epoch is None and risk <= rule.FREEZE_RISK and self._steady:
            epoch = self._freeze()
        elif epoch is None or risk >= rule.LARGEST_RISK:
            return None
        unmet = self._unmet(epoch)
        if not unmet:
            self._prove("epoch")
        elif self._rounds.start(epoch, self._composition(epoch, unmet)):
            self._mode = ROUNDS
        return None

    def _go_on(self) -> bool:
        """A short plan, of the same kind as the last full one and for its candidates; False if a full one is due."""
        since, wait = self.t - self._planned_at, self._patience
        if since >= wait:
            return False
        if self._mode == PAIRS:
            return self._greedy_spent <= self._greedy_limit and self._greedy()
        if self._mode != EXPLORE:
            return False
        before, risk = self._risk.total, self._risk.look_again(self._touched, self._now)
        may_freeze = risk <= rule.FREEZE_RISK and self._steady and rule.FREEZE_LOOKS * since >= wait
        if risk < rule.LARGEST_RISK <= before or may_freeze:
            return False
        self._explore()
        return True

    def _see_proven(self) -> None:
        """While rounds are open: do the results so far prove the groups?"""
        self._closed = False
        self._renew()
        self._touched = []
        self._raise_alarm()
        epoch = self._find_epoch()
        if self._pairs_done():
            self._prove("pairs")
        elif epoch is not None and not self._unmet(epoch):
            self._prove("epoch")

    # Freezes and rounds (sections 4 to 6).

    def _freeze(self) -> Epoch:
        labels, pulls, cores, sums, totals = self._now.labels, self._stacks.pulls, [], [], []
        for k, lead in enumerate(self._pairs.leads):
            members = np.flatnonzero(labels == k).tolist()
            dearest = rule.CORE_PRICE * min(self._prices.unit[m] for m in members)
            clearest = [m for m in members if m != lead and self._prices.unit[m] <= dearest]
            clearest.sort(key=lambda m: (-self._risk.margin[m], m))
            room = len(members) if len(members) <= rule.CORE_ARMS + 1 else rule.CORE_ARMS
            cores.append([lead, *clearest][:room])
            totals.append(float(pulls[members].sum()))
            sums.append(ordered_sum(np.array([self._stacks.prefix(m, pulls[m]) for m in members]), axis=0))
        level = level_of(len(self.freezes), self._log_inverse_delta)
        centers = np.array(sums) / np.array(totals)[:, None]
        epoch = Epoch(len(self.freezes), self.t, level, labels.tolist(), cores, centers, np.array(totals))
        self.freezes.append(epoch)
        return epoch

    def _find_epoch(self) -> Epoch | None:
        """The newest remembered epoch whose candidate is the estimate."""
        for epoch in reversed(self._remembered):
            if same_partition(epoch.labels, self._now.labels):
                return epoch
        return None

    def _unmet(self, epoch: Epoch) -> list[Test]:
        """The tests that are not met; those that a pair from the start meets are met from now on."""
        for test in epoch.tests:
            if self.alarm is None and test not in epoch.met:
                if test.kind == "pair":
                    settled = pair_evidence(self._stacks, test.arm, test.pool[0]) >= self._pairs.level
                else:
                    lead = epoch.cores[test.rival][0]
                    group = self._now.labels[lead]
                    settled = self._pairs.leads[group] == lead and bool(self._pairs.settled[test.arm, group])
                if settled:
                    epoch.met.add(test)
        return [test for test in epoch.tests if test not in epoch.met]
