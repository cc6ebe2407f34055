#!/usr/bin/env python3
"""All tests over HTTP once more, over three processes with one store.

PostgreSQL and an S3 server are started, then `tests/it` with a database and a prefix of its own for each test. Before the
three processes is a spreader, and no two requests of a client meet the same one: each test is then one of reading
what another process has acknowledged, too. With `--sabotage` the spreader's processes have each a store of their own: the rig must fail.

    python3 tests/rigs/suite.py PATH/TO/inlay [--tests sql usage] [--threads 3]
"""

import os
import re
import subprocess
import sys

from common import Failed, main
from services import KEYS, Bucket, Postgres


def options(parser):
    parser.add_argument("--tests", nargs="*", default=[], help="parts of the names of tests")
    parser.add_argument("--threads", type=int, default=3)


def run(rig):
    postgres, bucket = Postgres(rig), Bucket(rig)
    settings = {
        "INLAY_TEST_POSTGRES": f"postgres://inlay@127.0.0.1:{postgres.port}",
        "INLAY_TEST_BUCKET": f"http://127.0.0.1:{bucket.port}",
        "RUST_TEST_THREADS": str(rig.arguments.threads),
    }
    tests = rig.arguments.tests
    if rig.arguments.sabotage:
        # A few are enough to fail.
        settings["INLAY_TEST_APART"], tests = "true", ["settings::", "audit::"]
    # With the features of the whole workspace, as it is built by everybody else: nothing is compiled again.
    command = ["cargo", "test", "--workspace", "--test", "it", "--", *tests]
    done = subprocess.run(command, env=os.environ | KEYS | settings, stdout=subprocess.PIPE, text=True)
    sys.stdout.write(done.stdout)
    counted = re.search(r"(\d+) passed; (\d+) failed", done.stdout)
    if counted is None:
        raise Failed("the tests did not run")
    passed, failed = map(int, counted.groups())
    if passed + failed == 0:
        raise Failed("no test has this name")
    wrong = [f"{failed} tests failed"] if failed or done.returncode else []
    return wrong, f"{passed} tests over three processes"


if __name__ == "__main__":
    main("suite", __doc__, run, options)
