#!/usr/bin/env python3
"""Damages stored bytes, and looks for an answer that is wrong.

A real server makes a data directory with one of everything (`history.py`) and is killed. About two
hundred questions are asked on an undamaged copy (`answers.py`). Then, again and again: copy, flip
one bit or spoil a sector (`damage.py`), start, ask. Right is

- a start that is refused with exit code 1 and an error that names a file;
- a server that gives to each question the same answer, or an explicit error.

Another number, rows of another tenant, a start that is refused without saying where, a panic or an
end by a signal are findings. Damage to the last frames of the log looks like a torn write: there the
start must succeed, and the answers are those from before these frames. One server in ten is stopped
in good order afterwards, which writes what it has in memory, and is started and asked again.

    python3 tests/rigs/flips.py PATH/TO/inlay [--flips 300]
"""

import collections
import concurrent.futures
import contextlib
import random
import re
import shutil
import threading
import time

import answers
import damage
from common import Failed, Gone, NotStarted, main, panics_in
from history import History

# As many as a small machine has processors.
AT_ONCE = 2
AGAIN_EVERY = 10
# An undamaged server has merged what is due at its start by then.
MERGED_AFTER_S = 10
# Older than an hour, a directory is merged at every start, and answers cost more. A fresh one has
# other bytes and questions too.
FLIPS_OF_A_HISTORY = 1_000
# In so many, every kind of file is met for certain.
FLIPS_OF_ALL_KINDS = 100


def options(parser):
    parser.add_argument("--flips", type=int, default=300)


def run(rig):
    total, wrong = Seen(), []
    for first in range(0, rig.arguments.flips, FLIPS_OF_A_HISTORY):
        count = min(FLIPS_OF_A_HISTORY, rig.arguments.flips - first)
        folder = rig.folder / f"from-{first}"
        folder.mkdir()
        flips = Flips(rig, History(rig, folder, f"{rig.random_seed} {first}"), count)
        wrong += flips.run()
        total.add(flips.seen)
        if wrong:
            break
        shutil.rmtree(folder)
    missed = set(damage.KINDS.values()) - set(total.kinds)
    if missed and total.counts["damages"] >= FLIPS_OF_ALL_KINDS:
        wrong.append(f"no damage to {missed}")
    if not wrong and not total.counts["refused"] + total.counts["errors"]:
        wrong.append("no damage was ever noticed")
    return wrong, total.summary()


class Seen:
    """What was met."""

    def __init__(self):
        self.counts, self.kinds = collections.Counter(), collections.Counter()

    def add(self, other):
        self.counts += other.counts
        self.kinds += other.kinds

    def summary(self):
        counts = self.counts
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        return (
            f"{counts['damages']:,} damages ({kinds}; {counts['sectors']:,} of sectors): "
            f"{counts['refused']:,} refused at the start, {counts['with errors']:,} with "
            f"{counts['errors']:,} explicit errors, {counts['cut']:,} cut the end of the log, "
            f"{counts['same']:,} changed nothing; {counts['answers']:,} answers compared"
        )


class Flips:
    """Damages of one directory, and the right answers."""

    def __init__(self, rig, history, count):
        self.rig, self.history, self.seen = rig, history, Seen()
        self.asked = answers.questions(history)
        files = damage.read_files(history.data)
        self.log = damage.Log(files)
        states = {damage.WHOLE: history.data} | history.states
        # Those of a first start, and those after an orderly end: sums of fractions depend on the
        # order of rows, which another segment changes.
        self.states = states
        self.right = {state: self._ask_undamaged(place) for state, place in states.items()}
        lots = random.Random(f"{history.seed} dice")
        self.dice = damage.Dice(lots, files, self.log, history.past)
        self.lock, self.count = threading.Lock(), count
        self.second_look = threading.Lock()

    def _draw(self):
        """A damage of which it is known what must become of it."""
        while True:
            drawn = self.dice.draw()
            promise = self.log.promise(drawn.changed)
            if promise == damage.REFUSED or promise in self.right:
                self.seen.kinds[drawn.kind] += 1
                self.seen.counts.update(damages=1, sectors=drawn.is_sector)
                return drawn, promise

    def _ask_undamaged(self, source):
        with contextlib.ExitStack() as stack:
            server = self._start(stack, source, "undamaged")
            first = self._ask(server)
            if server.stop() != 0:
                raise Failed(f"an undamaged server does not end well:\n{server.log_end()}")
            server = self._start_again(stack, server)
            second = self._ask(server)
            for question, (status, answer) in zip(self.asked * 2, first + second, strict=True):
                if status >= 400 and question.credential != "revoked":
                    raise Failed(f"an undamaged server answers {question.path}: {status} {answer}")
            return first, second

    def _start(self, stack, source, name, drawn=None):
        data = self.history.folder / name
        stack.callback(shutil.rmtree, data, ignore_errors=True)
        shutil.copytree(source, data)
        if drawn:
            drawn.do(data)
        # The log outlives the directory: panics are looked for at the end.
        return self.rig.start(data, stack, log=self.rig.folder / f"{name}.log")

    def _start_again(self, stack, server):
        return self.rig.start(self.history.folder / server.log.stem, stack, log=server.log)

    def _ask(self, server):
        given = answers.ask(server.host, self.history, self.asked)
        server.expect_alive()
        return given

    # ---- Damage ------------------------------------------------------------------------------

    def run(self):
        """All of them; what was wrong with the first that was wrong."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                futures = [pool.submit(self._run_one, n) for n in range(self.count)]
                for future in concurrent.futures.as_completed(futures):
                    if future.result():
                        return future.result()
            finally:
                pool.shutdown(cancel_futures=True)
        return []

    def _run_one(self, number):
        with self.lock:
            drawn, promise = self._draw()
        name = f"damage-{number}"
        with contextlib.ExitStack() as stack:
            try:
                server = self._start(stack, self.history.data, name, drawn)
                wrong = self._look(stack, server, promise, number % AGAIN_EVERY == 0)
                wrong += panics_in(server.log.read_text(errors="replace"))
            except NotStarted as refusal:
                wrong = self._look_at_refusal(refusal, promise)
            except (Failed, Gone) as failure:
                wrong = [str(failure)]
        if not wrong:
            (self.rig.folder / f"{name}.log").unlink()
        return [f"{drawn.text}: {finding}" for finding in wrong]

    def _look(self, stack, server, promise, is_asked_again):
        if promise == damage.REFUSED:
            return ["the log is damaged, and the server starts"]
        first, second = self.right[promise]
        given = self._ask_damaged(server)
        wrong, errors = answers.compare(self.asked, first, given)
        if wrong:
            wrong = self._compare_with_now(self.states[promise], (first, given))
        state = "with errors" if errors else "same" if promise == damage.WHOLE else "cut"
        self.seen.counts.update({state: 1, "answers": len(given), "errors": errors})
        if wrong or not is_asked_again:
            return wrong
        # Damage must not spread by being written anew. An end that cannot write says so.
        code = server.stop()
        if code not in (0, 1):
            return [f"exit code {code} after SIGTERM"]
        if code == 0:
            again = self._ask(self._start_again(stack, server))
            wrong, _ = answers.compare(self.asked, second, again)
            if wrong:
                source = self.states[promise]
                wrong = self._compare_with_now(source, (first, given), (second, again))
        return wrong

    def _compare_with_now(self, source, *rounds):
        """What is wrong beside an undamaged server that starts now, too, and again for a second round of answers. Segments that
        are a minute old are merged soon after a start, and digests depend on which rows came together: some answers are others
        then, exactly the same in both."""
        wrong = []
        with self.second_look, contextlib.ExitStack() as stack:
            for number, (right, given) in enumerate(rounds):
                if number == 0:
                    server = self._start(stack, source, "undamaged-now")
                elif server.stop() != 0:
                    raise Failed(f"an undamaged server does not end well:\n{server.log_end()}")
                else:
                    server = self._start_again(stack, server)
                wrong = self._await_answers(server, right, given)
        return wrong

    def _await_answers(self, server, right, given):
        """What a server does not come to answer either, of the answers that are not right."""
        others = [n for n, pair in enumerate(zip(right, given, strict=True)) if pair[0] != pair[1]]
        asked, given = [self.asked[n] for n in others], [given[n] for n in others]
        end = time.monotonic() + MERGED_AFTER_S
        while True:
            now = answers.ask(server.host, self.history, asked)
            wrong, _ = answers.compare(asked, now, given)
            if not wrong or time.monotonic() > end:
                return wrong
            time.sleep(0.2)

    def _look_at_refusal(self, refusal, promise):
        self.seen.counts["refused"] += 1
        wrong = panics_in(refusal.said)
        if refusal.code != 1:
            wrong.append(f"exit code {refusal.code} at the start")
        if not re.search(r"SUPER\.|(wal|ckpt|seg|ids)/", refusal.said):
            wrong.append(f"a refusal that names no file: {refusal.said}")
        if promise not in (damage.WHOLE, damage.REFUSED):
            wrong.append(f"the torn end of a log keeps it from starting: {refusal.said}")
        return wrong

    def _ask_damaged(self, server):
        """The answers of a server with damage, spoiled where the rig must fail. An undamaged server that starts later for
        comparison is never spoiled, so that a second look cannot excuse what was spoiled here."""
        given = self._ask(server)
        kind = self.rig.arguments.sabotage
        if kind == "lose":
            return self.right[min(self.history.states)][0]
        if kind:
            place = next((n for n, (_, answer) in enumerate(given) if answer.get("data")), None)
            if place is not None:
                status, answer = given[place]
                rows = answer["data"]
                rows = [*rows, rows[0]] if kind == "double" else rows[1:]
                given[place] = status, answer | {"data": rows}
        return given


if __name__ == "__main__":
    main("flips", __doc__, run, options)
