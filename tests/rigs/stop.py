#!/usr/bin/env python3
"""Asks the server to end while everybody is talking to it.

Eight clients post batches and one changes the metadata when SIGTERM comes. Every request must
either be answered with 2xx, and then what it brought is there at the next start, or be refused: by
an answer, or by a connection that closes without one, and then nothing of it is there. That is
stricter than after a kill, where a batch without an answer may have been stored. The exit code must
be 0, and the end must come within the time that running requests are given.

    python3 tests/rigs/stop.py PATH/TO/inlay [--stops 20]
"""

import random
import time

from common import main, register
from ledger import Ledger
from load import Load, retry
from metadata import Metadata

LIFE_SECONDS = (0.05, 1.0)
# Running requests have 20 s; then what is in memory is written.
STOP_SECONDS_MAX = 30


def options(parser):
    parser.add_argument("--stops", type=int, default=20)


def run(rig):
    lots = random.Random(rig.random_seed)
    ledger = Ledger(rig.folder / "ledger.jsonl")
    metadata = Metadata(rig.random_seed)
    server = rig.start()
    key = register(server.host)
    took, unanswered, sabotage = [], 0, rig.arguments.sabotage
    for stop in range(rig.arguments.stops):
        load = Load(server.host, key, ledger, f"{rig.random_seed} {stop}", sabotage=sabotage)
        metadata.start(server.host, key)
        time.sleep(lots.uniform(*LIFE_SECONDS))
        server.expect_alive()
        started = time.monotonic()
        code = server.stop()
        took.append(time.monotonic() - started)
        load.join()
        metadata.join()
        sabotage = load.sabotage
        unanswered += load.gone
        if code != 0:
            ledger.wrong.append(f"stop {stop + 1}: exit code {code}")
        if took[-1] > STOP_SECONDS_MAX:
            ledger.wrong.append(f"stop {stop + 1} took {took[-1]:.1f} s")

        server = rig.start()
        untold = ledger.seen["whole"] + metadata.untold
        absent = ledger.compare(server.host, key)
        metadata.compare(server.host, key)
        untold = ledger.seen["whole"] + metadata.untold - untold
        if untold:
            ledger.wrong.append(
                f"stop {stop + 1}: {untold} requests took effect without an answer; of the metadata "
                f"it was last: {metadata.last_untold}"
            )
        ledger.close_round()
        if ledger.wrong or metadata.wrong:
            ledger.wrong.append(f"found after stop {stop + 1}")
            break
        retry(server.host, key, ledger, [batch for batch in absent if lots.random() < 0.5])
    return ledger.wrong + metadata.wrong, (
        f"{len(took)} stops, {ledger.summary()}, {unanswered} connections closed without an "
        f"answer, {metadata.summary()}; longest stop {max(took):.2f} s"
    )


if __name__ == "__main__":
    main("stop", __doc__, run, options)
