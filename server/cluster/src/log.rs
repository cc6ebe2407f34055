//! The log of a store, in PostgreSQL.
//!
//! ```text
//! read_after(17)     where the log ends, then the groups above record 17, checked by their checksums
//! resume(tail)       takes the lease and raises the epoch, if log and superblock are still as they were read; gives the writer (`writer.rs`)
//! replace, forget    the superblock, and groups that no checkpoint needs: for the process that leads alone
//! ```
//!
//! Checksums run through the log: each group's is over that of the group before, its numbers and its bytes. A database that comes back
//! without its newest groups, as a standby without synchronous replication may, is noticed by the next append, and by each process that has read them.

use std::{
    cmp::Ordering,
    sync::{
        Arc,
        atomic::{self, AtomicI64},
    },
    time::{Duration, Instant},
};

use inlay_engine::{
    Clock, Error, Result, Rng, SystemRng, View,
    remote::{Log, LogEnd, LogTail, LogWriter, Record, Superblock, records_of_group},
};
use parking_lot::Mutex;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;

use crate::{
    group::{self, RecordGroup},
    read_index::End,
    schema,
    session::{DatabaseSession, Failure, PLACE, Value},
    uploads,
    writer::{PostgresWriter, fenced},
};

/// Time for which a lease is given.
pub const LEASE_MS: i64 = 6_000;
/// Groups that are read at once.
const READ_GROUPS: i64 = 1_000;
/// Bytes that are read at once, and a group.
const READ_BYTES: i64 = 8 << 20;
/// Longest time for what a process reads that follows, mostly nothing: it must not stand still where the database does.
const POLL_TIME_MAX: Duration = Duration::from_secs(6);
/// Longest time for more of it: on a slow line.
const READ_TIME_MAX: Duration = Duration::from_secs(120);
/// Bytes of the secret of a log's processes.
const SECRET_BYTES: usize = 32;
/// How far the clocks of this machine and of the database may be apart.
const CLOCK_DIFFERENCE_MAX_MS: i64 = 500;
/// How long an erasure waits for other processes before it is tried again. One that has died is not waited for any more by
/// then: other erasures come after this one.
const OTHERS_TIME_MAX: Duration = Duration::from_secs(13);
/// Longest time for a vacuum.
const VACUUM_TIME_MAX: Duration = Duration::from_secs(600);

/// The log of one database. Until [`Log::resume`] it only reads.
pub struct PostgresLog {
    session: Arc<DatabaseSession>,
    identity: Identity,
    /// Where the log ended when it was read last, and who led.
    head: Mutex<Option<Head>>,
    /// Records up to this one are in every checkpoint that is kept.
    not_needed: AtomicI64,
}

/// Who a process is for the lease.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Drawn at the start of this process.
    pub own: Uuid,
    /// The process before it that had the same data directory, which has ended: its lease may be taken at once.
    pub before: Option<Uuid>,
}

impl Identity {
    /// A new process, after the one that had its directory before.
    pub fn new(rng: &dyn Rng, before: Option<Uuid>) -> Self {
        let mut random = [0; 16];
        rng.fill(&mut random);
        Self { own: uuid::Builder::from_random_bytes(random).into_uuid(), before }
    }
}

/// What `inlay.cluster` says.
#[derive(Debug, Clone)]
pub struct State {
    /// The superblock as bytes.
    pub superblock: Vec<u8>,
    /// Who led last.
    pub leader: Option<Uuid>,
    /// Milliseconds until the lease ends; negative where it has.
    pub lease_ms: i64,
    /// By which the objects of this log are named in the bucket.
    pub id: Uuid,
    /// Identity of the server on which the log was made, where that could be asked.
    pub system: Option<i64>,
    /// By which its processes know each other.
    pub secret: Vec<u8>,
}

/// Where the log ends, and who leads: as of one moment.
#[derive(Debug, Clone)]
pub struct Head {
    /// Number of the next record.
    pub lsn_next: i64,
    /// Checksum of the last group.
    pub chain: i64,
    /// Who leads, or led last.
    pub leader: Option<Uuid>,
    /// Where other processes reach the leader, once it has said so.
    pub leader_url: Option<String>,
    /// Milliseconds until the lease ends; negative where it has.
    pub lease_ms: i64,
    /// Epoch of the leader.
    pub epoch: i64,
    /// How many processes were there within ten seconds.
    pub nodes: i64,
    /// Number of the last file that was announced; 0 where none was.
    pub uploads: i64,
    /// When that was asked for.
    pub asked_at: Instant,
}

impl State {
    fn of(row: &Row) -> Result<Self> {
        let layout: i32 = row.try_get(0).map_err(unreadable)?;
        if layout != schema::LAYOUT {
            let detail = format!(
                "leads to tables of layout {layout}, and this build reads layout {}; use a newer build",
                schema::LAYOUT
            );
            return Err(Error::invalid("metadata URL", detail));
        }
        Ok(Self {
            superblock: row.try_get(1).map_err(unreadable)?,
            leader: row.try_get(2).map_err(unreadable)?,
            lease_ms: row.try_get(3).map_err(unreadable)?,
            id: row.try_get(4).map_err(unreadable)?,
            system: row.try_get(5).map_err(unreadable)?,
            secret: row.try_get(6).map_err(unreadable)?,
        })
    }
}

impl Head {
    fn of(row: &Row, asked_at: Instant) -> Result<Self> {
        Ok(Self {
            lsn_next: row.try_get(0).map_err(unreadable)?,
            chain: row.try_get(1).map_err(unreadable)?,
            leader: row.try_get(2).map_err(unreadable)?,
            leader_url: row.try_get(3).map_err(unreadable)?,
            lease_ms: row.try_get(4).map_err(unreadable)?,
            epoch: row.try_get(5).map_err(unreadable)?,
            nodes: row.try_get(6).map_err(unreadable)?,
            uploads: row.try_get(7).map_err(unreadable)?,
            asked_at,
        })
    }

    /// Checks that this is the log that was read as far as `before`, and not one that came back without its newest records. `groups` are those that
    /// were read with it.
    fn check_after(&self, before: &Self, groups: &[RecordGroup]) -> Result<()> {
        let chain_there = groups.iter().find_map(|group| match before.lsn_next {
            next if next == group.lsn_first => Some(group.chain_before),
            next if next == group.lsn_last() + 1 => Some(group.chain),
            _ => None,
        });
        let is_same = match self.lsn_next.cmp(&before.lsn_next) {
            Ordering::Less => false,
            Ordering::Equal => self.chain == before.chain,
            Ordering::Greater => chain_there.is_none_or(|chain| chain == before.chain),
        };
        if is_same {
            return Ok(());
        }
        let detail = format!(
            "had record {} before, and has another history now, which ends at {}: the database came back without its newest records",
            before.lsn_next - 1,
            self.lsn_next - 1
        );
        Err(Error::corrupt("inlay.log", detail))
    }
}

impl PostgresLog {
    /// The log of the database at the other end of a session.
    ///
    /// Errors: a database that cannot be reached; settings with which writes could be lost; tables of a newer layout, or the right to make them
    /// missing.
    pub fn new(session: Arc<DatabaseSession>, identity: Identity) -> Result<Self> {
        let (head, not_needed) = (Mutex::default(), AtomicI64::new(0));
        let this = Self { session, identity, head, not_needed };
        let exists = this.session.run(|client| async move {
            let rows = client.query_typed(schema::EXISTS, &[]).await?;
            Ok(rows.first().is_some_and(|row| row.get(0)))
        });
        if !exists.map_err(|failure| failure.error())? {
            let created = this
                .session
                .run(|client| async move { client.batch_execute(schema::CREATE).await });
            created.map_err(|failure| failure.error())?;
        }
        this.check_owner()?;
        this.check_formats()?;
        if let Some(state) = this.state()? {
            this.check_system(&state)?;
        }
        Ok(this)
    }

    /// What the database says of itself; `None` where none was created.
    pub fn state(&self) -> Result<Option<State>> {
        let rows =
            self.session.run(|client| async move { client.query_typed(schema::STATE, &[]).await });
        rows.map_err(|failure| failure.error())?.first().map(State::of).transpose()
    }

    /// Where the log ended when it was read last, and who led.
    pub fn head(&self) -> Option<Head> {
        self.head.lock().clone()
    }

    /// Whether it was read to this end: by number and checksum.
    pub fn is_read_to(&self, end: End) -> bool {
        let head = self.head.lock();
        head.as_ref().is_some_and(|head| (head.lsn_next, head.chain) == (end.lsn_next, end.chain))
    }

    /// Processes that were there within ten seconds; 0 before the log was read.
    pub fn nodes(&self) -> i64 {
        self.head.lock().as_ref().map_or(0, |head| head.nodes)
    }

    /// Asks where the log ends and who leads, without its groups.
    ///
    /// Errors: those of the connection.
    pub fn look(&self) -> Result<()> {
        let (head, _) = self.read(i64::MAX - 1, POLL_TIME_MAX)?;
        let mut last = self.head.lock();
        if last.as_ref().is_none_or(|last| last.asked_at < head.asked_at) {
            *last = Some(head);
        }
        Ok(())
    }

    /// By which this process takes the lease.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Identity of the server, where this user may ask for it.
    ///
    /// Errors: those of the connection.
    pub fn system(&self) -> Result<Option<i64>> {
        let rows =
            self.session.run(|client| async move { client.query_typed(schema::SYSTEM, &[]).await });
        match rows {
            Ok(rows) => Ok(rows.first().map(|row| row.get(0))),
            Err(Failure::Refused(..)) => Ok(None),
            Err(failure) => Err(failure.error()),
        }
    }

    /// Makes a database whose log begins behind record `lsn_last`: 0 for a new one, another for a store that was elsewhere. `id` names its objects.
    ///
    /// Errors: `Invalid` where there is a database.
    pub fn create_after(&self, superblock: &Superblock, lsn_last: u64, id: Uuid) -> Result<()> {
        let (database, bytes) = (Uuid::from_bytes(superblock.db), superblock.encode());
        let (lsn_next, system) = (number(lsn_last.saturating_add(1))?, self.system()?);
        let mut secret = vec![0; SECRET_BYTES];
        SystemRng.fill(&mut secret);
        let inserted = self.session.run(move |client| async move {
            let values: [Value<'_>; 7] = [
                (&schema::LAYOUT, Type::INT4),
                (&id, Type::UUID),
                (&system, Type::INT8),
                (&database, Type::UUID),
                (&lsn_next, Type::INT8),
                (&bytes, Type::BYTEA),
                (&secret, Type::BYTEA),
            ];
            client.execute_typed(schema::INSERT_DATABASE, &values).await
        });
        let is_there = match inserted {
            Ok(rows) => rows > 0,
            // Whether it was made is what the table says.
            Err(Failure::Lost(_)) => self.state()?.is_some_and(|state| state.id == id),
            Err(failure) => return Err(failure.error()),
        };
        match is_there {
            true => Ok(()),
            false => Err(Error::invalid(
                "metadata URL",
                "leads to a server that has a database of Inlay",
            )),
        }
    }

    /// Checks that this is the server on which the log was made, or its standby: a copy would delete what the other one has in the bucket.
    fn check_system(&self, state: &State) -> Result<()> {
        match (state.system, self.system()?) {
            (Some(made), Some(here)) if made != here => {
                let detail = format!(
                    "leads to a copy of a log that was made on another server: a dump that was restored, or a server that was upgraded. Two \
                     logs with one bucket delete each other's files. Where the other one is not used any more: \
                     UPDATE inlay.cluster SET system = {here}"
                );
                Err(Error::invalid("metadata URL", detail))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the clock of this machine goes like that of the database: times of events, alerts and reports are those of whichever process leads.
    ///
    /// Errors: `Invalid` naming the difference.
    pub fn check_clock(&self, clock: &dyn Clock) -> Result<()> {
        let (start, before) = (Instant::now(), clock.now_ms());
        let rows =
            self.session.run(|client| async move { client.query_typed(schema::CLOCK, &[]).await });
        let theirs =
            rows.map_err(|failure| failure.error())?.first().map(|row| row.get::<_, i64>(0));
        let took_ms = start.elapsed().as_millis() as i64;
        let difference = theirs.unwrap_or(before) - before - took_ms / 2;
        if difference.abs() > CLOCK_DIFFERENCE_MAX_MS + took_ms {
            let detail = format!(
                "differs by {difference} ms from that of the database, and {CLOCK_DIFFERENCE_MAX_MS} ms are allowed; have both follow a time server"
            );
            return Err(Error::invalid("clock of this machine", detail));
        }
        Ok(())
    }

    /// Checks that this build reads what each process that is there writes, and the other way round: any of them may lead next.
    fn check_formats(&self) -> Result<()> {
        let (first, last) = schema::FORMATS;
        let rows = self.session.run(move |client| async move {
            let values: [Value<'_>; 3] =
                [(&first, Type::INT4), (&last, Type::INT4), (&schema::FORMAT_WRITTEN, Type::INT4)];
            client.query_typed(schema::INCOMPATIBLE, &values).await
        });
        let Some(row) = rows.map_err(|failure| failure.error())?.into_iter().next() else {
            return Ok(());
        };
        let (version, their_first, their_last): (String, i32, i32) =
            (row.get(0), row.get(1), row.get(2));
        let detail = format!(
            "leads to a store of which a process of version {version} runs that reads formats {their_first} to {their_last} and writes {}; this one, of version {}, \
             reads {first} to {last} and writes {}. Upgrade by way of a version between them",
            row.get::<_, i32>(3),
            env!("CARGO_PKG_VERSION"),
            schema::FORMAT_WRITTEN
        );
        Err(Error::invalid("metadata URL", detail))
    }

    fn check_owner(&self) -> Result<()> {
        let owns =
            self.session.run(|client| async move { client.query_typed(schema::OWNS, &[]).await });
        match owns.map_err(|failure| failure.error())?.first().map(|row| row.get(0)) {
            Some(false) => Err(Error::invalid(
                "metadata URL",
                "names a user that does not own the table inlay.log, and could not vacuum what was erased",
            )),
            _ => Ok(()),
        }
    }

    /// Waits until all processes that are there have applied the log as it is now, and so have dropped their copies of files that it names no more; and those that they
    /// have prefetched for a record that did not come.
    ///
    /// Errors: one has not, in time. One that was away for ten seconds is waited for no longer: it answers nothing before it has dropped them.
    fn wait_for_others(&self) -> Result<()> {
        let (head, _) = self.read(i64::MAX - 1, POLL_TIME_MAX)?;
        let fetched = uploads::announce(&self.session, "").map_err(|failure| failure.error())?;
        let (own, last) = (self.identity.own, head.lsn_next - 1);
        let behind = self.session.wait_until_zero(OTHERS_TIME_MAX, move |client| async move {
            let values: [Value<'_>; 3] =
                [(&own, Type::UUID), (&last, Type::INT8), (&fetched, Type::INT8)];
            client.query_typed(schema::BEHIND, &values).await.map(|rows| rows.into_iter().next())
        });
        match behind.map_err(|failure| failure.error())? {
            0 => Ok(()),
            count => Err(Error::Io {
                place: "inlay.nodes".to_owned(),
                kind: std::io::ErrorKind::TimedOut,
                detail: format!("{count} processes have not applied record {last} yet"),
            }),
        }
    }

    /// Deletes groups up to a record: those that no other process needs, or all.
    fn delete_up_to(&self, lsn: i64, all: bool) -> Result<()> {
        let own = self.identity.own;
        let deleted = self.session.run(move |client| async move {
            let values: [Value<'_>; 3] =
                [(&own, Type::UUID), (&lsn, Type::INT8), (&all, Type::BOOL)];
            client.execute_typed(schema::FORGET, &values).await
        });
        deleted.map(drop).map_err(|failure| failure.error())
    }

    /// One statement: where the log ends, and the oldest groups with records above `after`.
    fn read(&self, after: i64, time_max: Duration) -> Result<(Head, Vec<RecordGroup>)> {
        let asked_at = Instant::now();
        let rows = self.session.run_within(time_max, move |client| async move {
            let values: [Value<'_>; 3] =
                [(&(after + 1), Type::INT8), (&READ_GROUPS, Type::INT8), (&READ_BYTES, Type::INT8)];
            client.query_typed(schema::READ, &values).await
        });
        let rows = rows.map_err(|failure| failure.error())?;
        let first = rows.first().ok_or_else(|| Error::corrupt("inlay.cluster", "has no row"))?;
        let head = Head::of(first, asked_at)?;
        let mut groups = Vec::new();
        for row in &rows {
            // A log without such groups has one row, whose columns of a group are null.
            let Some(lsn_first) = row.try_get::<_, Option<i64>>(8).map_err(unreadable)? else {
                continue;
            };
            let is_compressed = row.try_get(12).map_err(unreadable)?;
            let packed: Vec<u8> = row.try_get(13).map_err(unreadable)?;
            groups.push(RecordGroup {
                lsn_first,
                count: row.try_get(9).map_err(unreadable)?,
                chain_before: row.try_get(10).map_err(unreadable)?,
                chain: row.try_get(11).map_err(unreadable)?,
                body: group::unpack(is_compressed, packed, lsn_first)?,
            });
        }
        Ok((head, groups))
    }
}

impl Log for PostgresLog {
    fn superblock(&self) -> Result<Option<Superblock>> {
        let state = self.state()?;
        state.map(|state| Superblock::decode(&state.superblock, "inlay.cluster")).transpose()
    }

    fn create(&self, superblock: &Superblock) -> Result<()> {
        self.create_after(superblock, 0, Uuid::from_bytes(superblock.db))
    }

    fn replace(&self, superblock: &mut Superblock) -> Result<()> {
        let generation = superblock.generation.checked_add(1);
        let generation = generation
            .ok_or_else(|| Error::corrupt("inlay.cluster", "has the last generation there is"))?;
        let next = Superblock { generation, ..superblock.clone() };
        // The same statement again does no harm: the superblock is this writer's alone.
        let replace = || {
            let (own, bytes) = (self.identity.own, next.encode());
            let newest = next.checkpoints.first().map_or(0, |newest| newest.lsn as i64);
            self.session.run(move |client| async move {
                let values: [Value<'_>; 3] =
                    [(&own, Type::UUID), (&bytes, Type::BYTEA), (&newest, Type::INT8)];
                client.execute_typed(schema::REPLACE, &values).await
            })
        };
        let replaced = match replace() {
            Err(Failure::Lost(_)) => replace(),
            done => done,
        };
        match replaced.map_err(|failure| failure.error())? {
            0 => Err(fenced()),
            _ => {
                *superblock = next;
                Ok(())
            }
        }
    }

    fn read_after(&self, _: &Superblock, after: u64) -> Result<(Vec<Record>, LogTail)> {
        let after_number = number(after)?;
        let (head, mut groups) = self.read(after_number, POLL_TIME_MAX)?;
        // The rest in further statements. Groups behind the end that was found first are not read: it is their checksum that is checked.
        while let Some(read_to) = groups.last().map(RecordGroup::lsn_last)
            && read_to + 1 < head.lsn_next
        {
            let (_, more) = self.read(read_to, READ_TIME_MAX)?;
            if more.is_empty() {
                break;
            }
            groups.extend(more);
        }
        groups.retain(|group| group.lsn_first < head.lsn_next);
        let last = after_number.max(head.lsn_next - 1);
        group::check(&groups, after_number, last, head.chain)?;
        let mut last = self.head.lock();
        // An inspection or a backup may have asked before, and be later here.
        if last.as_ref().is_none_or(|last| last.asked_at < head.asked_at) {
            if let Some(last) = &*last {
                head.check_after(last, &groups)?;
            }
            *last = Some(head.clone());
        }
        drop(last);
        let mut records = Vec::new();
        for group in groups {
            let (first, count) = (group.lsn_first as u64, group.count as u32);
            let place = format!("inlay.log, group {first}");
            let of_group = records_of_group(&View::new(group.body), first, count, &place)?;
            records.extend(of_group.into_iter().filter(|record| record.lsn > after));
        }
        let tail = LogTail {
            lsn_last: (head.lsn_next - 1) as u64,
            chain: head.chain as u32,
            ..LogTail::default()
        };
        Ok((records, tail))
    }

    fn resume(&self, superblock: &Superblock, tail: &LogTail) -> Result<Box<dyn LogWriter>> {
        let (own, before) = (self.identity.own, self.identity.before);
        let (lsn_next, chain) = (number(tail.lsn_last + 1)?, i64::from(tail.chain));
        let bytes = superblock.encode();
        let taken = self.session.run(move |client| async move {
            let values: [Value<'_>; 6] = [
                (&own, Type::UUID),
                (&before, Type::UUID),
                (&lsn_next, Type::INT8),
                (&chain, Type::INT8),
                (&bytes, Type::BYTEA),
                (&(LEASE_MS as f64), Type::FLOAT8),
            ];
            let rows = client.query_typed(schema::TAKE_OVER, &values).await?;
            Ok(rows.first().map(|row| row.get::<_, i64>(0)))
        });
        let Some(epoch) = taken.map_err(|failure| failure.error())? else {
            let detail = "another process leads, or has appended records since the log was read";
            return Err(Error::invalid("metadata URL", detail));
        };
        let session = Arc::new(self.session.another());
        Ok(Box::new(PostgresWriter::new(session, own, epoch, chain)))
    }

    fn forget(&self, lsn: u64, _: Option<u64>) -> Result<()> {
        let lsn = number(lsn)?;
        self.not_needed.fetch_max(lsn, atomic::Ordering::Relaxed);
        // One that is slow, because it fetches a file, would have to begin anew otherwise.
        self.delete_up_to(lsn, false)
    }

    fn settle_deletions(&self) -> Result<()> {
        // Processes that are behind needed the records that go now.
        self.wait_for_others()?;
        self.delete_up_to(self.not_needed.load(atomic::Ordering::Relaxed), true)?;
        // On a connection of its own: what else is asked meanwhile must not wait for it.
        let session = Arc::new(self.session.another());
        let vacuumed = session.run_within(VACUUM_TIME_MAX, |client| async move {
            client.batch_execute("VACUUM inlay.log").await
        });
        vacuumed.map_err(|failure| failure.error())
    }

    fn files_after(&self, _: u64, _: u64, _: Option<LogEnd>) -> Result<Option<Vec<(String, u64)>>> {
        Ok(None)
    }

    fn is_in_files(&self) -> bool {
        false
    }

    fn check_superblock(&self) -> Vec<Error> {
        self.superblock().err().into_iter().collect()
    }
}

/// A column that is not of the type that it was made with.
fn unreadable(error: tokio_postgres::Error) -> Error {
    Error::corrupt("the schema inlay", error.to_string())
}

/// A record's number as the database has it.
fn number(lsn: u64) -> Result<i64> {
    i64::try_from(lsn).map_err(|_| Error::corrupt(PLACE, format!("has no number {lsn}")))
}
