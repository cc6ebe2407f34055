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

import random
import time

from common import main, register
from ledger import Ledger
from load import Load, retry
from metadata import Metadata

# From "hardly started" to "several flushes under way".
LIFE_SECONDS = (0.02, 1.3)


def options(parser):
    parser.add_argument("--kills", type=int, default=20)


def run(rig):
    lots = random.Random(rig.random_seed)
    ledger = Ledger(rig.folder / "ledger.jsonl")
    metadata = Metadata(rig.random_seed)
    server = rig.start()
    key = register(server.host)
    starts, sabotage = [], rig.arguments.sabotage
    for kill in range(rig.arguments.kills):
        load = Load(server.host, key, ledger, f"{rig.random_seed} {kill}", sabotage=sabotage)
        metadata.start(server.host, key)
        time.sleep(lots.uniform(*LIFE_SECONDS))
        server.kill()
        load.join()
        metadata.join()
        # A run that was too short to be spoiled leaves that to the next.
        sabotage = load.sabotage

        server = rig.start()
        starts.append(server.ready_seconds)
        absent = ledger.compare(server.host, key)
        metadata.compare(server.host, key)
        ledger.close_round()
        if ledger.wrong or metadata.wrong:
            ledger.wrong.append(f"found after kill {kill + 1}")
            break
        retry(server.host, key, ledger, [batch for batch in absent if lots.random() < 0.5])
    # Nothing is lost by stopping in good order either.
    code = server.stop()
    if code != 0:
        ledger.wrong.append(f"the server ended with {code} after SIGTERM")
    server = rig.start()
    ledger.compare(server.host, key)
    metadata.compare(server.host, key)
    return ledger.wrong + metadata.wrong, (
        f"{len(starts)} kills, {ledger.summary()}, {metadata.summary()}; "
        f"longest start {max(starts) * 1_000:.0f} ms"
    )


if __name__ == "__main__":
    main("kill", __doc__, run, options)
