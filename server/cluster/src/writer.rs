//! Appending to the log, and finding out what an append without an answer has come to.
//!
//! ```text
//! append(41, 2, …)      one statement: the end of the log moves from 41 to 43 and the group is inserted, if epoch, end and checksum are as
//!                       the writer believes; else neither
//!   inserted            the records are durable
//!   refused             nothing was written: the disk of the database is full, it only reads
//!   no row              another process leads: the writer has ended
//!   connection lost     the epoch is raised, which waits for what is under way; then the log says whether it has the group
//! ```

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use inlay_engine::{
    Error,
    remote::{AppendError, LogEnd, LogMeters, LogWriter},
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::{
    group::{self, RecordGroup},
    schema,
    session::{DatabaseSession, Failure, PLACE, Value},
};

/// The one process that appends.
pub struct PostgresWriter {
    session: Arc<DatabaseSession>,
    own: Uuid,
    epoch: i64,
    /// Checksum of the last group.
    chain: i64,
    /// First record of a group of which is not known whether it was inserted.
    unknown: Option<i64>,
    meters: Arc<LogMeters>,
}

impl PostgresWriter {
    /// The writer of the process `own`, which appends under `epoch` behind the group with the checksum `chain`.
    pub fn new(session: Arc<DatabaseSession>, own: Uuid, epoch: i64, chain: i64) -> Self {
        Self { session, own, epoch, chain, unknown: None, meters: Arc::default() }
    }

    /// Inserts a group, if the log is as this writer believes. Returns whether it is.
    fn insert(&self, group: &RecordGroup) -> Result<bool, Failure> {
        let (epoch, next) = (self.epoch, group.lsn_last() + 1);
        let (first, count) = (group.lsn_first, group.count);
        let (before, chain) = (group.chain_before, group.chain);
        let (is_compressed, body) = group::pack(&group.body);
        let inserted = self.session.run(move |client| async move {
            let values: [Value<'_>; 8] = [
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
    fn find(&mut self, group: &RecordGroup) -> Result<Option<bool>, Failure> {
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
    fn append_group(&mut self, group: &RecordGroup) -> Result<(), AppendError> {
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
            Err(
                failure @ (Failure::Unreachable(_) | Failure::Unsafe(_) | Failure::Refused(..)),
            ) => Err(AppendError::Retry(failure.error())),
            Err(failure @ Failure::Lost(_)) => {
                // A statement that was cancelled may still be on its way on this connection.
                self.session.drop_client();
                self.unknown = Some(group.lsn_first);
                Err(AppendError::Unknown(failure.error()))
            }
        }
    }
}

impl LogWriter for PostgresWriter {
    fn append(&mut self, lsn_first: u64, count: u32, body: &[u8]) -> Result<(), AppendError> {
        let group =
            RecordGroup::new(lsn_first, count, self.chain, body).map_err(AppendError::Retry)?;
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
pub fn fenced() -> Error {
    let detail = "the log goes on elsewhere: another process leads, or the database came back without its newest records; this process has ended";
    Error::Io {
        place: PLACE.to_owned(),
        kind: std::io::ErrorKind::PermissionDenied,
        detail: detail.to_owned(),
    }
}
