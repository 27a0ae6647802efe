"""Whether an installed wheel works: sessions and their certificates (cibuildwheel runs it)."""

from __future__ import annotations

import numpy as np

import coterie
from coterie import _native


def main() -> None:
    truth = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[[0, 0, 1, 2, 1, 2, 0, 2]]
    for method in ("croc", "shortlist", "boc"):
        rng = np.random.default_rng(1)
        session = coterie.Session(n_arms=8, n_clusters=3, dim=2, delta=0.05, method=method, noise=1.0)
        while not session.done:
            item = session.ask()
            session.tell(item, truth[item] + rng.standard_normal(2))
        assert coterie.same_partition(session.labels, [0, 0, 1, 2, 1, 2, 0, 2])
        assert method == "boc" or coterie.verify(session.certificate, session.events).valid
        print(f"{_native.__file__}: {method}, proven after {sum(session.pulls)} measurements")


if __name__ == "__main__":
    main()
