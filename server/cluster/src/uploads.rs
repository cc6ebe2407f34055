//! Files that the leader has uploaded and no record names yet: processes that follow prefetch them.
//!
//! A record that names a large file would make the others wait for it, with all that comes after the record. So the leader announces what it has uploaded, and names
//! it when the others have it:
//!
//! ```text
//! leader     uploads seg/a.seg, announces it as number 7, and waits until each other process says 7: for some seconds at most
//! follower   finds with the end of the log that there is a number 7, fetches seg/a.seg, says 7
//! leader     appends the record that names seg/a.seg; the follower opens its copy
//! ```
//!
//! Where a merge fails after its file was announced, a follower has a copy that no record will name. An erasure must not leave rows in it: it announces
//! an empty name, at which followers discard such copies, and waits for that number as well.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use inlay_engine::{
    VfsFile,
    remote::{ObjectPart, Objects},
};
use parking_lot::Mutex;
use tokio_postgres::types::Type;
use tracing::warn;
use uuid::Uuid;

use crate::{
    schema,
    session::{DatabaseSession, Failure, Value},
};

/// Smaller files are not announced: to fetch them takes no longer than to say so.
const ANNOUNCED_BYTES: u64 = 1 << 20;
/// How long the leader waits for others at least, and the rate at which it expects them to fetch a large file.
const WAIT_MIN: Duration = Duration::from_secs(5);
const BYTES_A_SECOND: u64 = 20 << 20;
/// Where another process did not fetch a file in time, none is waited for so long: it may be unable to.
const NO_WAIT: Duration = Duration::from_secs(60);
/// Longest time for a statement of a process that fetches.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(8);

/// One announcement of a file that was uploaded.
pub struct Upload {
    /// Announcements are numbered.
    pub number: i64,
    /// Path of the file; empty where copies that no record names are to be discarded.
    pub path: String,
}

/// The announcements of one log.
pub struct Uploads {
    session: Arc<DatabaseSession>,
    own: Uuid,
    wait_after: Mutex<Option<Instant>>,
    allowed: OnceLock<Validity>,
}

/// Whether a process may still change what others see.
pub type Validity = Box<dyn Fn() -> bool + Send + Sync>;

impl Uploads {
    /// The announcements at the other end of a session, for the process `own`.
    pub fn new(session: DatabaseSession, own: Uuid) -> Self {
        let (wait_after, allowed) = (Mutex::default(), OnceLock::new());
        Self { session: Arc::new(session), own, wait_after, allowed }
    }

    /// From now on files are uploaded only while this holds.
    pub fn allow_while(&self, is_valid: Validity) {
        let _ = self.allowed.set(is_valid);
    }

    fn is_allowed(&self) -> bool {
        self.allowed.get().is_none_or(|is_valid| is_valid())
    }

    /// Announces a file and waits until the other processes have it, for a while. Where that fails, they fetch it when a record names it.
    pub fn announce(&self, path: &str, len: u64) {
        // Others read no checkpoint but at their start.
        if len < ANNOUNCED_BYTES || path.starts_with("ckpt/") {
            return;
        }
        let waits = self.wait_after.lock().is_none_or(|after| Instant::now() > after);
        let announced = announce(&self.session, path);
        let done = announced.and_then(|number| match waits {
            true => self.wait(number, WAIT_MIN + Duration::from_secs(len / BYTES_A_SECOND)),
            false => Ok(true),
        });
        if !matches!(done, Ok(true)) {
            *self.wait_after.lock() = Some(Instant::now() + NO_WAIT);
            let error = done.err().map(|failure| failure.error());
            warn!(path, ?error, "other processes did not prefetch a file");
        }
    }

    /// Whether all other processes have the file of this number, after a while.
    fn wait(&self, number: i64, time_max: Duration) -> Result<bool, Failure> {
        let own = self.own;
        let waiting = self.session.wait_until_zero(time_max, move |client| async move {
            let values: [Value<'_>; 2] = [(&own, Type::UUID), (&number, Type::INT8)];
            client
                .query_typed(schema::NOT_FETCHED, &values)
                .await
                .map(|rows| rows.into_iter().next())
        });
        Ok(waiting? == 0)
    }

    /// What was announced behind a number, oldest first.
    ///
    /// Errors: those of the connection.
    pub async fn after(&self, number: i64) -> Result<Vec<Upload>, Failure> {
        let rows = self.session.run_here_within(STATEMENT_TIME_MAX, move |client| async move {
            client.query_typed(schema::UPLOADS, &[(&number, Type::INT8)]).await
        });
        let of = |row: &tokio_postgres::Row| Upload { number: row.get(0), path: row.get(1) };
        Ok(rows.await?.iter().map(of).collect())
    }

    /// Says that this process has what was announced up to a number.
    ///
    /// Errors: those of the connection.
    pub async fn say_fetched(&self, number: i64) -> Result<(), Failure> {
        let own = self.own;
        let said = self.session.run_here_within(STATEMENT_TIME_MAX, move |client| async move {
            let values: [Value<'_>; 2] = [(&own, Type::UUID), (&number, Type::INT8)];
            client.execute_typed(schema::FETCHED, &values).await
        });
        said.await.map(drop)
    }
}

/// Announces a path. Returns its number.
///
/// Errors: those of the connection.
pub fn announce(session: &Arc<DatabaseSession>, path: &str) -> Result<i64, Failure> {
    let path = path.to_owned();
    session.run(move |client| async move {
        let rows = client.query_typed(schema::ANNOUNCE, &[(&path, Type::TEXT)]).await?;
        Ok(rows.first().map_or(0, |row| row.get(0)))
    })
}

/// The object store of a process that announces what it uploads.
pub struct AnnouncedObjects<O> {
    /// Where the objects are.
    pub objects: O,
    /// Where uploads are announced.
    pub uploads: Arc<Uploads>,
}

impl<O: Objects> Objects for AnnouncedObjects<O> {
    fn put(&self, name: &str, content: &dyn VfsFile) -> io::Result<()> {
        let refused =
            || io::Error::new(io::ErrorKind::PermissionDenied, "another process may lead");
        if !self.uploads.is_allowed() {
            return Err(refused());
        }
        self.objects.put(name, content)?;
        // Where another process has taken over meanwhile, it knows nothing of this object, which may have rows that it erases.
        if !self.uploads.is_allowed() {
            self.objects.remove(name)?;
            return Err(refused());
        }
        self.uploads.announce(name, content.len()?);
        Ok(())
    }

    fn get(&self, name: &str, into: &dyn VfsFile) -> io::Result<()> {
        self.objects.get(name, into)
    }

    fn get_part(&self, name: &str, part: ObjectPart) -> io::Result<(Vec<u8>, u64)> {
        self.objects.get_part(name, part)
    }

    fn list_sizes(&self, prefix: &str) -> io::Result<Vec<(String, u64)>> {
        self.objects.list_sizes(prefix)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.objects.remove(name)
    }
}
