//! The log of a store, in PostgreSQL.
//!
//! ```text
//! append(41, 2, …)      one statement: the end of the log moves from 41 to 43 and the group is inserted, if epoch, end and checksum are as
//!                       the writer believes; else neither
//!   inserted            the records are durable
//!   refused             nothing was written: the disk of the database is full, it only reads
//!   no row              another process leads: the writer has ended
//!   connection lost     the epoch is raised, which waits for what is under way; then the log says whether it has the group
//! ```
//!
//! Checksums run through the log: each group's is over that of the group before, its numbers and its bytes. A database that comes back
//! without its newest groups, as a standby without synchronous replication may, is noticed by the next append.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use inlay_engine::{
    Error, Result, Rng, View,
    remote::{
        AppendError, Log, LogEnd, LogMeters, LogTail, LogWriter, Record, Superblock,
        records_of_group,
    },
};
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;

use crate::{
    group::{self, Group},
    schema,
    session::{Failure, PLACE, Session},
};

/// Time for which a lease is given.
pub const LEASE_MS: i64 = 6_000;
/// Groups that are read at once.
const READ_GROUPS: i64 = 64;

/// The log of one database. Until [`Log::resume`] it only reads.
pub struct PostgresLog {
    session: Arc<Session>,
    identity: Identity,
}

/// Who a process is for the lease.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// This process.
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
    /// Number of the next record.
    pub lsn_next: i64,
    /// Checksum of the last group.
    pub chain: i64,
    /// Who led last.
    pub leader: Option<Uuid>,
    /// Milliseconds until the lease ends; negative where it has.
    pub lease_ms: i64,
}

impl State {
    fn of(row: &Row) -> Result<Self> {
        let layout: i32 = row.get(0);
        if layout != schema::LAYOUT {
            let detail = format!(
                "leads to tables of layout {layout}, and this build reads layout {}; use a newer build",
                schema::LAYOUT
            );
            return Err(Error::invalid("metadata URL", detail));
        }
        Ok(Self {
            superblock: row.get(1),
            lsn_next: row.get(2),
            chain: row.get(3),
            leader: row.get(4),
            lease_ms: row.get(5),
        })
    }
}

impl PostgresLog {
    /// The log of the database at the other end of a session.
    ///
    /// Errors: a database that cannot be reached; settings with which writes could be lost; tables of a newer layout, or the right to make them
    /// missing.
    pub fn new(session: Arc<Session>, identity: Identity) -> Result<Self> {
        let this = Self { session, identity };
        this.check_settings()?;
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
        Ok(this)
    }

    fn check_settings(&self) -> Result<()> {
        let rows = self
            .session
            .run(|client| async move { client.query_typed(schema::SETTINGS, &[]).await })
            .map_err(|failure| failure.error())?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (synchronous_commit, fsync): (&str, &str) = (row.get(0), row.get(1));
        let refused = |detail: &str| Err(Error::invalid("metadata URL", detail));
        if row.get(2) {
            return refused(
                "leads to a server that takes no writes: a standby, or one that only reads",
            );
        }
        if synchronous_commit == "off" {
            return refused(
                "leads to a server with synchronous_commit = off, which loses acknowledged writes in a crash",
            );
        }
        if fsync == "off" {
            return refused(
                "leads to a server with fsync = off, which loses acknowledged writes in a crash",
            );
        }
        Ok(())
    }

    /// What the database says of itself; `None` where none was created.
    pub fn state(&self) -> Result<Option<State>> {
        let rows =
            self.session.run(|client| async move { client.query_typed(schema::STATE, &[]).await });
        rows.map_err(|failure| failure.error())?.first().map(State::of).transpose()
    }

    /// This process.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Makes a database whose log begins behind record `lsn_last`, for a store that was elsewhere.
    ///
    /// Errors: `Invalid` where there is a database.
    pub fn create_after(&self, superblock: &Superblock, lsn_last: u64) -> Result<()> {
        let (database, bytes) = (Uuid::from_bytes(superblock.db), superblock.encode());
        let lsn_next = number(lsn_last.saturating_add(1))?;
        let inserted = self.session.run(move |client| async move {
            let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] = [
                (&schema::LAYOUT, Type::INT4),
                (&database, Type::UUID),
                (&lsn_next, Type::INT8),
                (&bytes, Type::BYTEA),
            ];
            client.execute_typed(schema::INSERT_DATABASE, &values).await
        });
        match inserted.map_err(|failure| failure.error())? {
            0 => Err(Error::invalid(
                "metadata URL",
                "leads to a server that has a database of Inlay",
            )),
            _ => Ok(()),
        }
    }

    /// The groups with records above `after`, in several statements.
    fn groups_after(&self, after: u64) -> Result<Vec<Group>> {
        let mut after = number(after)?;
        let mut groups = Vec::new();
        loop {
            let rows = self.session.run(move |client| async move {
                client
                    .query_typed(
                        schema::READ,
                        &[(&(after + 1), Type::INT8), (&READ_GROUPS, Type::INT8)],
                    )
                    .await
            });
            let rows = rows.map_err(|failure| failure.error())?;
            for row in &rows {
                let group = Group {
                    lsn_first: row.get(0),
                    count: row.get(1),
                    chain_before: row.get(2),
                    chain: row.get(3),
                    body: group::unpack(row.get(4), row.get(5), row.get(0))?,
                };
                after = group.lsn_last();
                groups.push(group);
            }
            if (rows.len() as i64) < READ_GROUPS {
                return Ok(groups);
            }
        }
    }
}

impl Log for PostgresLog {
    fn superblock(&self) -> Result<Option<Superblock>> {
        let state = self.state()?;
        state.map(|state| Superblock::decode(&state.superblock, "inlay.cluster")).transpose()
    }

    fn create(&self, superblock: &Superblock) -> Result<()> {
        self.create_after(superblock, 0)
    }

    fn replace(&self, superblock: &mut Superblock) -> Result<()> {
        let generation = superblock.generation.checked_add(1);
        let generation = generation
            .ok_or_else(|| Error::corrupt("inlay.cluster", "has the last generation there is"))?;
        let next = Superblock { generation, ..superblock.clone() };
        // The same statement again does no harm: the superblock is this writer's alone.
        let replace = || {
            let (own, bytes) = (self.identity.own, next.encode());
            self.session.run(move |client| async move {
                let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
                    [(&own, Type::UUID), (&bytes, Type::BYTEA)];
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
        // The end first: groups behind it are another writer's, and are not read.
        let state = self.state()?;
        let state = state.ok_or_else(|| Error::corrupt("inlay.cluster", "has no row"))?;
        let mut groups = self.groups_after(after)?;
        groups.retain(|group| group.lsn_first < state.lsn_next);
        let last = number(after)?.max(state.lsn_next - 1);
        group::check(&groups, number(after)?, last, state.chain)?;
        let mut records = Vec::new();
        for group in groups {
            let (first, count) = (group.lsn_first as u64, group.count as u32);
            let place = format!("inlay.log, group {first}");
            let of_group = records_of_group(&View::new(group.body), first, count, &place)?;
            records.extend(of_group.into_iter().filter(|record| record.lsn > after));
        }
        let tail = LogTail {
            lsn_last: (state.lsn_next - 1) as u64,
            chain: state.chain as u32,
            ..LogTail::default()
        };
        Ok((records, tail))
    }

    fn resume(&self, superblock: &Superblock, tail: &LogTail) -> Result<Box<dyn LogWriter>> {
        let (own, before) = (self.identity.own, self.identity.before);
        let (lsn_next, chain) = (number(tail.lsn_last + 1)?, i64::from(tail.chain));
        let bytes = superblock.encode();
        let taken = self.session.run(move |client| async move {
            let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 6] = [
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
        Ok(Box::new(Writer {
            session: Arc::new(self.session.another()),
            own,
            epoch,
            chain,
            unknown: None,
            meters: Arc::default(),
        }))
    }

    fn forget(&self, lsn: u64, _: Option<u64>) -> Result<()> {
        let (own, lsn) = (self.identity.own, number(lsn)?);
        let deleted = self.session.run(move |client| async move {
            client.execute_typed(schema::FORGET, &[(&own, Type::UUID), (&lsn, Type::INT8)]).await
        });
        deleted.map(drop).map_err(|failure| failure.error())
    }

    fn settle_deletions(&self) -> Result<()> {
        let vacuumed = self
            .session
            .run(|client| async move { client.batch_execute("VACUUM inlay.log").await });
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

/// The one process that appends.
struct Writer {
    session: Arc<Session>,
    own: Uuid,
    epoch: i64,
    /// Checksum of the last group.
    chain: i64,
    /// First record of a group of which is not known whether it was inserted.
    unknown: Option<i64>,
    meters: Arc<LogMeters>,
}

impl Writer {
    /// Inserts a group, if the log is as this writer believes. Returns whether it is.
    fn insert(&self, group: &Group) -> Result<bool, Failure> {
        let (epoch, next) = (self.epoch, group.lsn_last() + 1);
        let (first, count) = (group.lsn_first, group.count);
        let (before, chain) = (group.chain_before, group.chain);
        let (is_compressed, body) = group::pack(&group.body);
        let inserted = self.session.run(move |client| async move {
            let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 8] = [
                (&epoch, Type::INT8),
                (&first, Type::INT8),
                (&count, Type::INT4),
                (&before, Type::INT8),
                (&chain, Type::INT8),
                (&is_compressed, Type::BOOL),
                (&body, Type::BYTEA),
                (&next, Type::INT8),
            ];
            client.execute_typed(schema::APPEND, &values).await
        });
        inserted.map(|rows| rows > 0)
    }

    /// Whether the log has a group of which nothing was known. Afterwards it cannot come there any more by what was sent before.
    ///
    /// Errors: `Ok(None)` where another process leads.
    fn find(&mut self, group: &Group) -> Result<Option<bool>, Failure> {
        let (own, first) = (self.own, group.lsn_first);
        let found = self.session.run(move |client| async move {
            let raised = client.query_typed(schema::RAISE, &[(&own, Type::UUID)]).await?;
            let Some(epoch) = raised.first().map(|row| row.get::<_, i64>(0)) else {
                return Ok(None);
            };
            let rows = client.query_typed(schema::CHAIN_OF, &[(&first, Type::INT8)]).await?;
            Ok(Some((epoch, rows.first().map(|row| row.get::<_, i64>(0)))))
        });
        Ok(found?.map(|(epoch, chain)| {
            self.epoch = epoch;
            chain == Some(group.chain)
        }))
    }

    /// Inserts a group, or says that it is there already.
    fn append_group(&mut self, group: &Group) -> Result<(), AppendError> {
        if self.unknown == Some(group.lsn_first) {
            match self.find(group) {
                Ok(None) => return Err(AppendError::Fatal(fenced())),
                Ok(Some(true)) => {
                    self.unknown = None;
                    return Ok(());
                }
                Ok(Some(false)) => self.unknown = None,
                Err(failure) => return Err(AppendError::Unknown(failure.error())),
            }
        }
        match self.insert(group) {
            Ok(true) => Ok(()),
            Ok(false) => Err(AppendError::Fatal(fenced())),
            Err(failure @ (Failure::Unreachable(_) | Failure::Refused(..))) => {
                Err(AppendError::Retry(failure.error()))
            }
            Err(failure @ Failure::Lost(_)) => {
                // A statement that was cancelled may still be on its way on this connection.
                self.session.drop_client();
                self.unknown = Some(group.lsn_first);
                Err(AppendError::Unknown(failure.error()))
            }
        }
    }
}

impl LogWriter for Writer {
    fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
        let group = Group::new(lsn_first, count, self.chain, body).map_err(AppendError::Retry)?;
        let start = Instant::now();
        let mut appended = self.append_group(&group);
        if matches!(appended, Err(AppendError::Unknown(_))) {
            // Most connections are lost for a moment: a restart of the database, a balancer that closed it.
            appended = self.append_group(&group);
        }
        appended?;
        self.chain = group.chain;
        self.meters.sync_us.record(start.elapsed().as_micros() as u64);
        self.meters.group_records.record(u64::from(count));
        self.meters.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn rotate(&mut self) {}

    fn end(&self) -> Option<LogEnd> {
        None
    }

    fn meters(&self) -> Arc<LogMeters> {
        Arc::clone(&self.meters)
    }
}

/// The error of a process that does not lead any more.
fn fenced() -> Error {
    let detail = "the log goes on elsewhere: another process leads, or the database came back without its newest records; this process has ended";
    Error::Io {
        place: PLACE.to_owned(),
        kind: std::io::ErrorKind::PermissionDenied,
        detail: detail.to_owned(),
    }
}

/// A record's number as the database has it.
fn number(lsn: u64) -> Result<i64> {
    i64::try_from(lsn).map_err(|_| Error::corrupt(PLACE, format!("has no number {lsn}")))
}
