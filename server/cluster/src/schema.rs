//! The four tables in PostgreSQL, and all statements about them.
//!
//! ```text
//! inlay.cluster     one row: its own id, by which objects are named; the server that it was made on; which database, who leads under which epoch and until when, where the log ends, the superblock
//! inlay.log         a row for each group of records: its first number, how many, the epoch of its writer, checksums, bytes
//! inlay.nodes       a row for each process: where others reach it, how much of the log it has applied, which formats it reads, when it was there last
//! inlay.uploads     files that are in the bucket and that no record names yet, by number: other processes prefetch them
//! ```
//!
//! A transaction that changes the row of `inlay.cluster` has its lock, so appends and take-overs come one after the other: what an old leader has under way is
//! either in the log before the new epoch, or finds no row. An append names the epoch, since a leader raises its own to be sure of what it has under
//! way; all else names the leader, which is another one for each process.

/// Layout of the tables; a newer one is refused. Tables and columns that an older build does not mind are added without another number.
pub const LAYOUT: i32 = 1;

/// Formats of records and files that this build reads, first and last.
pub const FORMATS: (i32, i32) = (1, 1);

/// The one that it writes. A new format is read by one release, and written by the next: processes of both run beside each other during an upgrade.
pub const FORMAT_WRITTEN: i32 = 1;

/// Whether all tables and columns are there: the last that was added.
pub const EXISTS: &str = "SELECT to_regclass('inlay.uploads') IS NOT NULL AND EXISTS (SELECT 1 FROM pg_attribute \
    WHERE attrelid = to_regclass('inlay.nodes') AND attname = 'format_written')";

/// Makes tables and columns that are missing. The lock keeps two processes that start at once apart. All of it is one transaction, which gives up where it would have to wait
/// for somebody who reads a table for long: appends would wait behind it.
pub const CREATE: &str = "\
SELECT pg_advisory_xact_lock(7310588), set_config('lock_timeout', '2s', true);
CREATE SCHEMA IF NOT EXISTS inlay;
CREATE TABLE IF NOT EXISTS inlay.cluster (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  layout int NOT NULL,
  id uuid NOT NULL,
  system bigint,
  database uuid NOT NULL,
  epoch bigint NOT NULL,
  leader uuid,
  lease_until timestamptz NOT NULL,
  lsn_next bigint NOT NULL,
  chain bigint NOT NULL,
  superblock bytea NOT NULL,
  secret bytea NOT NULL);
CREATE TABLE IF NOT EXISTS inlay.log (
  lsn_first bigint PRIMARY KEY,
  count int NOT NULL,
  epoch bigint NOT NULL,
  chain_before bigint NOT NULL,
  chain bigint NOT NULL,
  is_compressed boolean NOT NULL,
  body bytea NOT NULL);
DO $$ BEGIN
  IF EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'inlay.log'::regclass AND attname = 'body' AND attstorage <> 'e') THEN
    ALTER TABLE inlay.log ALTER COLUMN body SET STORAGE EXTERNAL;
  END IF;
END $$;
CREATE TABLE IF NOT EXISTS inlay.nodes (
  id uuid PRIMARY KEY,
  url text NOT NULL,
  version text NOT NULL,
  applied bigint NOT NULL,
  seen_at timestamptz NOT NULL);
ALTER TABLE inlay.nodes ADD COLUMN IF NOT EXISTS format_first int NOT NULL DEFAULT 1,
  ADD COLUMN IF NOT EXISTS format_last int NOT NULL DEFAULT 1,
  ADD COLUMN IF NOT EXISTS format_written int NOT NULL DEFAULT 1,
  ADD COLUMN IF NOT EXISTS fetched bigint;
CREATE TABLE IF NOT EXISTS inlay.uploads (
  number bigserial PRIMARY KEY,
  path text NOT NULL,
  uploaded_at timestamptz NOT NULL DEFAULT now());";

/// Settings with which an acknowledged write could be lost, and whether the server takes writes.
pub const SETTINGS: &str = "SELECT current_setting('synchronous_commit'), current_setting('fsync'), \
    current_setting('synchronous_standby_names') <> '', \
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";

/// Identity of the server and its standbys: it differs where a dump was restored, and after an upgrade by `pg_upgrade`.
pub const SYSTEM: &str = "SELECT system_identifier FROM pg_control_system()";

/// Milliseconds since 1970 by the clock of the server.
pub const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Whether the user owns the log, and so may vacuum it: an erasure ends with that.
pub const OWNS: &str = "SELECT pg_has_role(current_user, relowner, 'USAGE') \
    FROM pg_class WHERE oid = 'inlay.log'::regclass";

/// A new database, of which nobody is the leader: `$1` layout, `$2` id, `$3` server, `$4` database, `$5` next number, `$6` superblock,
/// `$7` secret of its processes.
pub const INSERT_DATABASE: &str = "INSERT INTO inlay.cluster \
    (layout, id, system, database, epoch, lease_until, lsn_next, chain, superblock, secret) \
    VALUES ($1, $2, $3, $4, 0, now(), $5, 0, $6, $7) ON CONFLICT DO NOTHING";

/// Layout, superblock, who leads, milliseconds until the lease ends, id, server, secret.
pub const STATE: &str = "SELECT layout, superblock, leader, \
    (extract(epoch FROM lease_until - now()) * 1000)::bigint, id, system, secret FROM inlay.cluster";

/// Where the log ends, who leads and where, for how many milliseconds, under which epoch, how many processes there are, and the last upload; then, in a row each, the
/// oldest groups with records above `$1`: up to `$2` of them, or about `$3` bytes. One statement is one moment. The length of a body is known without reading it.
pub const READ: &str = "SELECT c.lsn_next, c.chain, c.leader, n.url, \
    (extract(epoch FROM c.lease_until - now()) * 1000)::bigint, c.epoch, \
    (SELECT count(*) FROM inlay.nodes WHERE seen_at > now() - interval '10 s'), \
    (SELECT coalesce(max(number), 0) FROM inlay.uploads), \
    g.lsn_first, g.count, g.chain_before, g.chain, g.is_compressed, g.body \
    FROM inlay.cluster AS c LEFT JOIN inlay.nodes AS n ON n.id = c.leader LEFT JOIN (\
    SELECT *, sum(octet_length(body)) OVER (ORDER BY lsn_first) - octet_length(body) AS before \
    FROM (SELECT * FROM inlay.log WHERE lsn_first + count > $1 \
    AND lsn_first >= coalesce((SELECT max(lsn_first) FROM inlay.log WHERE lsn_first <= $1), 0) \
    ORDER BY lsn_first LIMIT $2) AS oldest) AS g \
    ON g.before < $3 ORDER BY g.lsn_first";

/// Where the log ends: number of the next record, and checksum of the last group.
pub const END: &str = "SELECT lsn_next, chain FROM inlay.cluster";

/// Takes over: `$1` the new leader, `$2` the one before whose lease may be taken, `$3` to `$5` what was read, `$6` milliseconds.
pub const TAKE_OVER: &str = "UPDATE inlay.cluster \
    SET epoch = epoch + 1, leader = $1, lease_until = now() + $6 * interval '1 ms' \
    WHERE (lease_until < now() OR leader = $2) AND lsn_next = $3 AND chain = $4 AND superblock = $5 \
    RETURNING epoch";

/// Renews the lease of the leader `$1` by `$2` milliseconds, and says where the log ends.
pub const RENEW: &str = "UPDATE inlay.cluster SET lease_until = now() + $2 * interval '1 ms' \
    WHERE leader = $1 RETURNING lsn_next";

/// Gives the lease of the leader `$1` back.
pub const RELEASE: &str = "UPDATE inlay.cluster SET lease_until = now() WHERE leader = $1";

/// Raises the epoch of the leader `$1`, which waits for what that leader has under way.
pub const RAISE: &str =
    "UPDATE inlay.cluster SET epoch = epoch + 1 WHERE leader = $1 RETURNING epoch";

/// Appends a group: `$1` epoch, `$2` first number, `$3` how many, `$4` and `$5` checksums before and after, `$6` compressed, `$7` bytes, `$8` the number
/// behind the group. No row where any of it is not as the writer believes.
pub const APPEND: &str = "WITH head AS (UPDATE inlay.cluster SET lsn_next = $8, chain = $5 \
    WHERE epoch = $1 AND lsn_next = $2 AND chain = $4 RETURNING 1) \
    INSERT INTO inlay.log SELECT $2, $3, $1, $4, $5, $6, $7 FROM head";

/// The checksum of the group whose first record is `$1`.
pub const CHAIN_OF: &str = "SELECT chain FROM inlay.log WHERE lsn_first = $1";

/// Replaces the superblock by `$2`, for the leader `$1`, if the log reaches to its newest checkpoint `$3`.
pub const REPLACE: &str =
    "UPDATE inlay.cluster SET superblock = $2 WHERE leader = $1 AND lsn_next > $3";

/// Deletes groups without a record above `$2`, for the leader `$1`: those that all processes have applied which were there within ten seconds, or, where `$3`, all.
pub const FORGET: &str = "DELETE FROM inlay.log WHERE lsn_first + count <= $2 + 1 \
    AND ($3 OR lsn_first + count <= 1 + \
    coalesce((SELECT min(applied) FROM inlay.nodes WHERE id <> $1 AND seen_at > now() - interval '10 s'), $2)) \
    AND EXISTS (SELECT 1 FROM inlay.cluster WHERE leader = $1)";

/// The process `$1` is there: `$2` where others reach it, `$3` its version, `$4` the last record that it has applied, `$5` the last upload that it has fetched,
/// `$6` to `$8` the formats that it reads, first and last, and the one that it writes.
pub const SEEN: &str = "INSERT INTO inlay.nodes \
    (id, url, version, applied, fetched, format_first, format_last, format_written, seen_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now()) ON CONFLICT (id) DO UPDATE \
    SET url = $2, version = $3, applied = $4, fetched = greatest(inlay.nodes.fetched, $5), seen_at = now()";

/// Other processes than `$1` that were there within ten seconds and have not applied record `$2`, or not what was announced as `$3`: they may have copies of what was
/// dropped. An older build prefetches nothing, and says nothing of it.
pub const BEHIND: &str = "SELECT count(*) FROM inlay.nodes WHERE id <> $1 \
    AND (applied < $2 OR fetched < $3) AND seen_at > now() - interval '10 s'";

/// Announces the file `$1`, and forgets what was announced long ago. Returns its number. The lock is held until the number can be seen, so that none is seen before a smaller one.
pub const ANNOUNCE: &str = "WITH lock AS MATERIALIZED (SELECT pg_advisory_xact_lock(7310589)), \
    gone AS (DELETE FROM inlay.uploads WHERE uploaded_at < now() - interval '1 hour') \
    INSERT INTO inlay.uploads (path) SELECT $1 FROM lock RETURNING number";

/// What was announced behind number `$1`.
pub const UPLOADS: &str =
    "SELECT number, path FROM inlay.uploads WHERE number > $1 ORDER BY number";

/// The process `$1` has fetched what was announced up to number `$2`.
pub const FETCHED: &str = "UPDATE inlay.nodes SET fetched = greatest(fetched, $2) WHERE id = $1";

/// Other processes than `$1` that were there within ten seconds and have not fetched what was announced as `$2`.
pub const NOT_FETCHED: &str = "SELECT count(*) FROM inlay.nodes \
    WHERE id <> $1 AND fetched < $2 AND seen_at > now() - interval '10 s'";

/// A process that was there within ten seconds and writes no format of `$1` to `$2`, or does not read `$3`: its version, the formats that it reads, and the one that it writes.
pub const INCOMPATIBLE: &str = "SELECT version, format_first, format_last, format_written FROM inlay.nodes \
    WHERE (format_written NOT BETWEEN $1 AND $2 OR $3 NOT BETWEEN format_first AND format_last) \
    AND seen_at > now() - interval '10 s' LIMIT 1";

/// The process `$1` goes, and with it rows of others that ended without a word.
pub const GONE: &str =
    "DELETE FROM inlay.nodes WHERE id = $1 OR seen_at < now() - interval '1 day'";
