//! The two tables in PostgreSQL, and all statements about them.
//!
//! ```text
//! inlay.cluster     one row: its own id, by which objects are named; the server that it was made on; which database, who leads under which epoch and until when, where the log ends, the superblock
//! inlay.log         a row for each group of records: its first number, how many, the epoch of its writer, checksums, bytes
//! ```
//!
//! A transaction that changes the row of `inlay.cluster` has its lock, so appends and take-overs come one after the other: what an old leader has under way is
//! either in the log before the new epoch, or finds no row. An append names the epoch, since a leader raises its own to be sure of what it has under
//! way; all else names the leader, which is another one for each process.

/// Layout of the tables; a newer one is refused.
pub const LAYOUT: i32 = 1;

/// Whether the tables are there.
pub const EXISTS: &str = "SELECT to_regclass('inlay.cluster') IS NOT NULL";

/// Makes the tables. The lock keeps two processes that start at once apart.
pub const CREATE: &str = "\
SELECT pg_advisory_xact_lock(7310588);
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
  superblock bytea NOT NULL);
CREATE TABLE IF NOT EXISTS inlay.log (
  lsn_first bigint PRIMARY KEY,
  count int NOT NULL,
  epoch bigint NOT NULL,
  chain_before bigint NOT NULL,
  chain bigint NOT NULL,
  is_compressed boolean NOT NULL,
  body bytea NOT NULL);
ALTER TABLE inlay.log ALTER COLUMN body SET STORAGE EXTERNAL;";

/// Settings with which an acknowledged write could be lost, and whether the server takes writes.
pub const SETTINGS: &str = "SELECT current_setting('synchronous_commit'), current_setting('fsync'), \
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";

/// Identity of the server and its standbys: it differs where a dump was restored, and after an upgrade by `pg_upgrade`.
pub const SYSTEM: &str = "SELECT system_identifier FROM pg_control_system()";

/// Whether the user owns the log, and so may vacuum it: an erasure ends with that.
pub const OWNS: &str = "SELECT pg_has_role(current_user, relowner, 'USAGE') \
    FROM pg_class WHERE oid = 'inlay.log'::regclass";

/// A new database, of which nobody is the leader: `$1` layout, `$2` id, `$3` server, `$4` database, `$5` next number, `$6` superblock.
pub const INSERT_DATABASE: &str = "INSERT INTO inlay.cluster \
    (layout, id, system, database, epoch, lease_until, lsn_next, chain, superblock) \
    VALUES ($1, $2, $3, $4, 0, now(), $5, 0, $6) ON CONFLICT DO NOTHING";

/// Layout, superblock, end of the log, who leads, milliseconds until the lease ends, id, server.
pub const STATE: &str = "SELECT layout, superblock, lsn_next, chain, leader, \
    (extract(epoch FROM lease_until - now()) * 1000)::bigint, id, system FROM inlay.cluster";

/// Groups with records above `$1`, oldest first: up to `$2` of them, or about `$3` bytes. The length of a body is known without reading it.
pub const READ: &str = "SELECT lsn_first, count, chain_before, chain, is_compressed, body FROM (\
    SELECT *, sum(octet_length(body)) OVER (ORDER BY lsn_first) - octet_length(body) AS before \
    FROM (SELECT * FROM inlay.log WHERE lsn_first + count > $1 ORDER BY lsn_first LIMIT $2) AS oldest) AS measured \
    WHERE before < $3 ORDER BY lsn_first";

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

/// Deletes groups without a record above `$2`, for the leader `$1`.
pub const FORGET: &str = "DELETE FROM inlay.log WHERE lsn_first + count <= $2 + 1 \
    AND EXISTS (SELECT 1 FROM inlay.cluster WHERE leader = $1)";
