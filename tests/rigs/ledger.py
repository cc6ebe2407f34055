"""What was sent and what was promised, kept outside of the server, and the comparison.

Every batch of events has a name, which each of its new events carries as a string property. Before
a batch is sent it is written down as *sent*; when its answer is 2xx it is written down as
*acknowledged* before anything else is sent over that connection. So after a crash the ledger knows
of every batch which of two rules holds:

- acknowledged: each of its new events counts exactly once, for ever;
- sent, and no 2xx: it is there whole or not at all, and what was found once stays.

About a third of all events were sent before: copies of acknowledged ones, or a second copy within
the same batch. They must change nothing, and the answer must say how many they were. Ids are
numbered per tenant, so that every id exists in every tenant: they must not be taken for each other.

Batches carry the label of a round too. The comparison asks for each batch of the rounds that are
still open, and for the totals of everything: count, sum, days added up, and groups added up, so
that the ways to an answer are compared with each other.
"""

import collections
import concurrent.futures
import copy
import json
import threading
from datetime import datetime, timedelta, timezone
from random import Random

from questions import EVENT, Questions, iso

TENANTS = ("acme", "borealis", "cumulus", "delta")
MODELS = ("nova", "lyra", "orion")
# The specification's limit of one request.
BATCH_EVENTS_MAX = 1_000
RESENT_SHARE = 0.3
# Groups of an answer are limited to 1,000, and one question may be about two rounds.
ROUND_BATCHES_MAX = 500
# Acknowledged events that can be sent again.
POOL_EVENTS = 4_000
# Wide events are not among them: two sets of properties in one request would be too many.
POOL_EVENT_BYTES_MAX = 600
DAYS = 20
# One batch in so many has nearly 2,000 properties: two different ones make the server write what
# is in memory to a segment, so that a short run meets that too.
WIDE_EVERY = 40
# An event has at most 100 properties, up to five of which every event has.
WIDE_EVENTS, WIDE_PROPERTIES = 20, 95


class Batch:
    """One request: events that are new, and copies of old ones."""

    def __init__(self, name, round_label):
        self.name = name
        self.round = round_label
        self.events = []
        self.copies = 0
        # (tenant, model) to count and sum of what is new.
        self.parts = collections.defaultdict(lambda: [0, 0])
        self.attempts = 0
        # Known to be stored: sending it again must change nothing.
        self.is_stored = False

    def body(self):
        return '{"events":[' + ",".join(self.events) + "]}"

    def of_tenant(self, tenant):
        parts = [part for (owner, _), part in self.parts.items() if owner == tenant]
        return sum(count for count, _ in parts), sum(total for _, total in parts)


class Ledger:
    """Every batch that is not yet known in full, and the totals of all that were acknowledged."""

    def __init__(self, path, prefix=""):
        self.lock = threading.Lock()
        self.file = open(path, "a", encoding="utf-8")
        self.prefix = prefix
        self.lots = Random(prefix)
        now = datetime.now(timezone.utc)
        self.window = {"from": iso(now - timedelta(days=DAYS + 1)), "to": iso(now + timedelta(1))}
        self.times = [
            iso(now - timedelta(milliseconds=n * 86_400 * DAYS)) for n in range(1, 1_000, 7)
        ]
        self.next_ids = dict.fromkeys(TENANTS, 0)
        self.batches = 0
        self.round = 0
        self.round_batches = 0
        self.closed_rounds = set()
        self.pool = []
        self.acknowledged_now, self.unknown = {}, {}
        self.totals = collections.defaultdict(lambda: [0, 0])
        self.wrong = []
        self.seen = collections.Counter()

    # ---- Sending -----------------------------------------------------------------------------

    def make(
        self, random, events_max=BATCH_EVENTS_MAX, wide_every=WIDE_EVERY, is_full=False, extra=None
    ):
        """A batch of 1 to `events_max` events; smaller ones are more frequent.

        Of a full one every event is new. `extra` gives more string properties of an event.
        """
        with self.lock:
            if self.round_batches >= ROUND_BATCHES_MAX:
                self._next_round()
            self.round_batches += 1
            self.batches += 1
            number = self.batches
        is_wide = number % wide_every == 0
        share = random.uniform(0.6, 1) if is_wide else random.random()
        size = 1 + int(share**2 * events_max)
        resent = sum(random.random() < RESENT_SHARE for _ in range(size - 1))
        if is_full:
            size, resent = events_max, 0
        with self.lock:
            batch = Batch(f"{self.prefix}b{number}", f"{self.prefix}r{self.round}")
            firsts = dict(self.next_ids)
            for tenant in TENANTS:
                self.next_ids[tenant] += size
            copies = [random.choice(self.pool) for _ in range(resent)] if self.pool else []
        for position in range(size - resent):
            wide = number // wide_every * WIDE_EVENTS + position if is_wide else None
            more = extra(random) if extra else ""
            batch.events.append(self._event(batch, firsts, position, random, wide, more))
        # Where the pool is empty still, the batch repeats itself.
        copies += [random.choice(batch.events) for _ in range(resent - len(copies))]
        batch.copies = len(copies)
        batch.events += copies
        random.shuffle(batch.events)
        return batch

    def _event(self, batch, firsts, position, random, wide, more):
        tenant, model = random.choice(TENANTS), random.choice(MODELS)
        n = random.randrange(1_000)
        part = batch.parts[tenant, model]
        part[0] += 1
        part[1] += n
        numbers = f'"n":{n}'
        if wide is not None and position < WIDE_EVENTS:
            # Two sets of names, in turn: more would be refused until they are written.
            group = wide % (2 * WIDE_EVENTS)
            numbers += "".join(f',"w{group}_{p}":{p}' for p in range(WIDE_PROPERTIES))
        return (
            f'{{"tenant_id":"{tenant}","event_name":"{EVENT}",'
            f'"timestamp":"{random.choice(self.times)}","event_id":"{firsts[tenant] + position}",'
            f'"user_id":"u{n % 97}","string_props":{{"batch":"{batch.name}",'
            f'"round":"{batch.round}","model":"{model}"{more}}},"numeric_props":{{{numbers}}}}}'
        )

    def sent(self, batch):
        batch.attempts += 1
        with self.lock:
            self.seen["requests"] += 1
            if not batch.is_stored:
                self.unknown[batch.name] = batch
            self._write("sent", batch)

    def acknowledged(self, batch, answer):
        """A 2xx: from here on the batch must be there."""
        with self.lock:
            self._write("acknowledged", batch)
            self.seen["acknowledged"] += 1
            self.seen["events"] += len(batch.events)
            # A batch that was tried before may have been stored at that time.
            allowed = {batch.copies} if batch.attempts == 1 else {batch.copies, len(batch.events)}
            if batch.is_stored:
                allowed = {len(batch.events)}
            if answer["accepted"] != len(batch.events) or answer["duplicates"] not in allowed:
                counts = {name: answer[name] for name in ("accepted", "duplicates", "rejected")}
                self.wrong.append(
                    f"{batch.name} of {len(batch.events)} events, {batch.copies} of them copies, "
                    f"was answered with {counts}"
                )
            self._store(batch)

    def refused(self, batch, why):
        with self.lock:
            self.seen["refused"] += 1
            self._write(f"refused: {why}", batch)

    def _store(self, batch):
        self.unknown.pop(batch.name, None)
        if batch.is_stored:
            return
        batch.is_stored = True
        self.acknowledged_now[batch.name] = batch
        for key, (count, total) in batch.parts.items():
            self.totals[key][0] += count
            self.totals[key][1] += total
        # Replaced by lot, so that old events are sent again as well.
        for event in batch.events[:40]:
            if len(event) > POOL_EVENT_BYTES_MAX:
                continue
            if len(self.pool) < POOL_EVENTS:
                self.pool.append(event)
            else:
                self.pool[self.lots.randrange(POOL_EVENTS)] = event

    def _write(self, state, batch):
        parts = {f"{tenant} {model}": part for (tenant, model), part in batch.parts.items()}
        json.dump({"batch": batch.name, "state": state, "new": parts}, self.file)
        self.file.write("\n")
        self.file.flush()

    # ---- Comparing ---------------------------------------------------------------------------

    def copy(self):
        """The state of this moment, to compare with what a power cut left."""
        with self.lock:
            twin = copy.copy(self)
            twin.acknowledged_now = self.acknowledged_now.copy()
            # What becomes of these differs: there they may be lost, here they get their answer.
            twin.unknown = {name: copy.copy(batch) for name, batch in self.unknown.items()}
            twin.totals = collections.defaultdict(lambda: [0, 0])
            twin.totals |= {key: list(part) for key, part in self.totals.items()}
            twin.wrong, twin.seen, twin.pool = [], collections.Counter(), []
            twin.closed_rounds = self.closed_rounds.copy()
            return twin

    def close_round(self):
        """What was acknowledged and compared is from now on checked by the totals alone."""
        with self.lock:
            open_still = {batch.round for batch in self.unknown.values()}
            for name, batch in list(self.acknowledged_now.items()):
                if batch.round not in open_still:
                    self.closed_rounds.add(batch.round)
                    del self.acknowledged_now[name]
            self._next_round()

    def _next_round(self):
        self.round += 1
        self.round_batches = 0

    def compare(self, host, key, settle=True):
        """Asks the server about everything. The batches without 2xx that are not there.

        With `settle`, what is found now is what must be found ever after; without it, batches that
        were refused may still come or stay away (a log that failed tells at the next start only).
        """
        batches = self.acknowledged_now | self.unknown
        labels = {batch.round for batch in batches.values()}
        with concurrent.futures.ThreadPoolExecutor(len(TENANTS)) as pool:
            asked = pool.map(lambda tenant: self._ask(host, key, tenant, labels), TENANTS)
            answers = dict(zip(TENANTS, asked, strict=True))
        found = {}
        for tenant, (open_still, closed, _) in answers.items():
            found |= {(tenant, name): part for name, part in (open_still | closed).items()}
            for name in open_still.keys() - batches.keys():
                self.wrong.append(f"{name} of {tenant} was never sent")
        absent = [each for each in batches.values() if not self._judge(each, found, settle)]
        wanted = self.totals
        if not settle:
            wanted = copy.deepcopy(self.totals)
            for batch in [each for each in self.unknown.values() if each not in absent]:
                for part, (count, total) in batch.parts.items():
                    wanted[part][0] += count
                    wanted[part][1] += total
        for tenant, (_, _, totals) in answers.items():
            self._compare_totals(tenant, totals, wanted)
        return absent

    def _ask(self, host, key, tenant, labels):
        """Of one tenant: batches in rounds that are open, those in the others, and the totals."""
        questions = Questions(host, key, self.window)
        open_still = questions.batches(tenant, labels - self.closed_rounds)
        closed = questions.batches(tenant, labels & self.closed_rounds)
        totals = questions.totals(tenant)
        questions.connection.close()
        return open_still, closed, totals

    def _judge(self, batch, found, settle):
        """Whether a batch is there; a wrong one is noted, and counted as there."""
        expected = {tenant: batch.of_tenant(tenant) for tenant in TENANTS}
        seen = {tenant: found.get((tenant, batch.name), (0, 0)) for tenant in TENANTS}
        is_known = batch.is_stored and batch.name not in self.unknown
        if seen == expected:
            if not is_known and settle:
                self.seen["whole"] += 1
                self._store(batch)
            return True
        if not is_known and not any(count for count, _ in seen.values()):
            if settle:
                self.seen["absent"] += 1
                del self.unknown[batch.name]
            return False
        promise = "acknowledged" if is_known else "not acknowledged, and there in part"
        self.wrong.append(f"{batch.name}, {promise}: {seen} instead of {expected}")
        self.unknown.pop(batch.name, None)
        return True

    def _compare_totals(self, tenant, answers, totals):
        own = {model: totals.get((tenant, model), (0, 0)) for model in MODELS}
        count = sum(part[0] for part in own.values())
        expected = {
            "count": count,
            "sum": sum(part[1] for part in own.values()),
            "days added up": count,
            "hours added up": count,
            "models": {model: part[0] for model, part in own.items() if part[0]},
        }
        for name, answer in answers.items():
            if answer != expected[name]:
                self.wrong.append(f"{tenant}, {name}: {answer} instead of {expected[name]}")

    def summary(self):
        return summary(self.seen)


def summary(seen):
    """What one ledger has seen, or several together."""
    return (
        f"{seen['acknowledged']:,} batches with {seen['events']:,} events acknowledged, "
        f"{seen['whole'] + seen['absent']:,} in doubt "
        f"({seen['whole']:,} whole, {seen['absent']:,} absent)"
    )
