#!/usr/bin/env python3
"""Kills the server at moments that nobody chose, and looks for what it had promised.

Eight clients post batches of 1 to 1,000 events, almost a third of them resent; one more makes,
renames and deletes dashboards, makes API keys and revokes them. After a random time the process
gets SIGKILL. The next start is compared with the ledger: every acknowledged event once, every other
batch whole or not at all; every acknowledged change of the metadata, and a revoked key stays
revoked. Half of the batches that got no answer are then sent again.

    python3 tests/rigs/kill.py PATH/TO/inlay [--kills 20]

The page cache survives a kill, so this shows nothing about power loss: that is `power.py`.
"""

import collections
import random
import shutil
import time

from common import main, register
from ledger import Ledger, summary
from load import Load, retry
from metadata import Metadata

# Most lives are short, as kills are what counts; in the longest ones several flushes get under way.
LIFE_SECONDS_MIN, LIFE_SECONDS_MAX, LIFE_SKEW = 0.02, 1.3, 4
# Then a fresh directory: to compare everything with the ledger takes longer the more there is.
KILLS_OF_A_DIRECTORY = 25


def options(parser):
    parser.add_argument("--kills", type=int, default=20)


def run(rig):
    lots, sabotage = random.Random(rig.random_seed), rig.arguments.sabotage
    seen, metadata, starts, wrong = collections.Counter(), Metadata(rig.random_seed), [], []
    for first in range(0, rig.arguments.kills, KILLS_OF_A_DIRECTORY):
        series = Series(rig, lots, f"{rig.random_seed} {first}", sabotage)
        count = min(KILLS_OF_A_DIRECTORY, rig.arguments.kills - first)
        wrong += [f"{line} (kills from {first + 1} on)" for line in series.run(count)]
        sabotage = series.sabotage
        seen += series.ledger.seen
        metadata.add(series.metadata)
        starts += series.starts
        if wrong:
            break
        shutil.rmtree(series.folder)
    return wrong, (
        f"{len(starts)} kills, {summary(seen)}, {metadata.summary()}; "
        f"longest start {max(starts) * 1_000:.0f} ms"
    )


class Series:
    """One data directory, and kills of its servers."""

    def __init__(self, rig, lots, seed, sabotage):
        self.rig, self.lots, self.seed, self.sabotage = rig, lots, seed, sabotage
        self.folder = rig.folder / f"series {seed}"
        self.folder.mkdir()
        self.ledger = Ledger(self.folder / "ledger.jsonl")
        self.metadata = Metadata(seed)
        self.starts = []
        self.server = self._start()
        self.key = register(self.server.host)

    def run(self, kills):
        """What was wrong."""
        for kill in range(kills):
            self._live(kill)
            self.server.kill()
            self.load.join()
            self.metadata.join()
            # A life that was too short to be spoiled leaves that to the next.
            self.sabotage = self.load.sabotage

            self.server = self._start()
            self.starts.append(self.server.ready_seconds)
            absent = self._compare()
            self.ledger.close_round()
            if self.wrong():
                return [*self.wrong(), f"found after kill {kill + 1}"]
            again = [batch for batch in absent if self.lots.random() < 0.5]
            retry(self.server.host, self.key, self.ledger, again)
        # Nothing is lost by stopping in good order either.
        code = self.server.stop()
        if code != 0:
            self.ledger.wrong.append(f"the server ended with {code} after SIGTERM")
        self.server = self._start()
        self._compare()
        self.server.kill()
        return self.wrong()

    def wrong(self):
        return self.ledger.wrong + self.metadata.wrong

    def _start(self):
        # The log outlives the series: panics are looked for at the end.
        return self.rig.start(self.folder / "data", log=self.rig.folder / "server.log")

    def _live(self, kill):
        host, seed = self.server.host, f"{self.seed} {kill}"
        self.load = Load(host, self.key, self.ledger, seed, sabotage=self.sabotage)
        self.metadata.start(host, self.key)
        share = self.lots.random() ** LIFE_SKEW
        time.sleep(LIFE_SECONDS_MIN + share * (LIFE_SECONDS_MAX - LIFE_SECONDS_MIN))

    def _compare(self):
        absent = self.ledger.compare(self.server.host, self.key)
        self.metadata.compare(self.server.host, self.key)
        return absent


if __name__ == "__main__":
    main("kill", __doc__, run, options)
