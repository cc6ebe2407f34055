//! A connection to the database, made anew where it was lost.
//!
//! ```text
//! postgres://inlay@db.acme.com/inlay                        TLS, with the certificates of the machine
//! postgres://inlay@localhost/inlay                          without TLS: it stays on the machine
//! postgres://inlay@a,b/inlay?target_session_attrs=read-write     the one of two hosts that takes writes
//! ```
//!
//! A failure says whether a statement may have been carried out: `Refused` is an answer of the database, which has done nothing; `Unreachable` is a
//! connection that was not made; after `Lost` nobody knows.

use std::{
    future::Future,
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use inlay_engine::{Error, Result};
use parking_lot::Mutex;
use tokio_postgres::{
    Client, Config, Row,
    config::{Host, SslMode},
    error::{Severity, SqlState},
    types::{ToSql, Type},
};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::{calls::Calls, schema};

/// Name of the database in errors.
pub const PLACE: &str = "PostgreSQL";
/// Longest time for a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
/// Longest time for a statement with the connection that it may need.
const CALL_TIME_MAX: Duration = Duration::from_secs(8);
/// How often a count is asked for that is waited for.
const COUNT_EVERY: Duration = Duration::from_millis(100);
/// After a failed connection none is tried for so long: callers that wait for each other would each wait for a timeout.
const PAUSE: Duration = Duration::from_millis(300);

/// A value of a statement, with its type: so a statement is one round trip, and no pooler has to know it.
pub type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// Why a statement has no result.
#[derive(Debug)]
pub enum Failure {
    /// No connection was made: nothing was sent.
    Unreachable(String),
    /// The database has refused the statement, and has done nothing of it.
    Refused(SqlState, String),
    /// The connection was lost with the statement under way.
    Lost(String),
    /// The server has settings with which a write that it has acknowledged could be lost: nothing was sent.
    Unsafe(String),
}

impl Failure {
    /// As an error of the engine. A full disk of the database is one of the kind `StorageFull`.
    pub fn error(&self) -> Error {
        let (kind, detail) = match self {
            Self::Unreachable(detail) => (io::ErrorKind::NotConnected, detail),
            Self::Refused(code, detail) if *code == SqlState::DISK_FULL => {
                (io::ErrorKind::StorageFull, detail)
            }
            Self::Refused(_, detail) => (io::ErrorKind::Other, detail),
            Self::Unsafe(detail) => return Error::invalid("metadata URL", detail.as_str()),
            Self::Lost(detail) => (io::ErrorKind::ConnectionReset, detail),
        };
        Error::Io { place: PLACE.to_owned(), kind, detail: detail.clone() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // After FATAL the session has ended, maybe within a commit.
            Some(answer) if answer.parsed_severity() == Some(Severity::Error) => {
                Self::Refused(answer.code().clone(), answer.message().to_owned())
            }
            Some(answer) => Self::Lost(answer.message().to_owned()),
            None => Self::Lost(text_of(&error)),
        }
    }
}

/// An error with what caused it.
fn text_of(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", text_of(source)),
        None => error.to_string(),
    }
}

/// A session of the database. Statements of several threads share it.
pub struct DatabaseSession {
    calls: Calls,
    config: Config,
    tls: MakeRustlsConnect,
    client: Mutex<Option<Arc<Client>>>,
    failed: Mutex<Option<Instant>>,
}

impl DatabaseSession {
    /// A session that is made with its first statement.
    ///
    /// Errors: `Invalid` for a URL that names no database.
    pub fn new(calls: Calls, url: &str) -> Result<Self> {
        let mut config: Config =
            url.parse().map_err(|error| Error::invalid("metadata URL", text_of(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(Error::invalid("metadata URL", "names no host"));
        }
        if !url.contains("sslmode=") {
            let is_here = |host: &Host| match host {
                Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
                Host::Unix(_) => true,
            };
            let stays_here = config.get_hosts().iter().all(is_here);
            config.ssl_mode(if stays_here { SslMode::Disable } else { SslMode::Require });
        }
        config.application_name("inlay").connect_timeout(CONNECT_TIME_MAX);
        config.keepalives_idle(Duration::from_secs(5)).tcp_user_timeout(Duration::from_secs(8));
        let tls = MakeRustlsConnect::new(tls_of_the_machine()?);
        let (client, failed) = (Mutex::default(), Mutex::default());
        Ok(Self { calls, config, tls, client, failed })
    }

    /// Another session of the same database.
    pub fn another(&self) -> Self {
        let (calls, config, tls) = (self.calls.clone(), self.config.clone(), self.tls.clone());
        Self { calls, config, tls, client: Mutex::default(), failed: Mutex::default() }
    }

    /// Runs statements on the connection, which is made where there is none.
    pub fn run<T, F>(
        self: &Arc<Self>,
        statements: impl FnOnce(Arc<Client>) -> F + Send + 'static,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    {
        self.run_within(CALL_TIME_MAX, statements)
    }

    /// As [`DatabaseSession::run`], for statements that may take longer.
    pub fn run_within<T, F>(
        self: &Arc<Self>,
        time_max: Duration,
        statements: impl FnOnce(Arc<Client>) -> F + Send + 'static,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, tokio_postgres::Error>> + Send + 'static,
    {
        let this = Arc::clone(self);
        let done = self.calls.wait(time_max, async move { this.run_here(statements).await });
        if matches!(done, Err(Failure::Lost(_))) {
            // What was cancelled is still on its way there, and what comes next would wait for it.
            self.drop_client();
        }
        done
    }

    /// As [`DatabaseSession::run`], on a thread that does not block.
    pub async fn run_here<T, F>(
        &self,
        statements: impl FnOnce(Arc<Client>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let client = self.client().await?;
        let done = statements(Arc::clone(&client)).await.map_err(Failure::from);
        if matches!(done, Err(Failure::Lost(_))) {
            self.drop_client();
        }
        done
    }

    /// As [`DatabaseSession::run_here`], for at most so long. What takes longer is `Lost`.
    pub async fn run_here_within<T, F>(
        &self,
        time_max: Duration,
        statements: impl FnOnce(Arc<Client>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let done = tokio::time::timeout(time_max, self.run_here(statements)).await;
        done.unwrap_or_else(|_| {
            // What was cancelled is still on its way there, and what comes next would wait for it.
            self.drop_client();
            Err(Failure::Lost("no answer in time".to_owned()))
        })
    }

    /// Asks for a count until it is zero, or for so long. Returns the last one.
    ///
    /// Errors: those of the statement.
    pub fn wait_until_zero<F>(
        self: &Arc<Self>,
        time_max: Duration,
        count: impl Fn(Arc<Client>) -> F + Clone + Send + 'static,
    ) -> Result<i64, Failure>
    where
        F: Future<Output = Result<Option<Row>, tokio_postgres::Error>> + Send + 'static,
    {
        let start = Instant::now();
        loop {
            let row = self.run(count.clone())?;
            match row.map_or(0, |row| row.get(0)) {
                0 => return Ok(0),
                count if start.elapsed() > time_max => return Ok(count),
                _ => thread::sleep(COUNT_EVERY),
            }
        }
    }

    /// Gives up the connection: its answers would be those of statements that were cancelled.
    pub fn drop_client(&self) {
        *self.client.lock() = None;
    }

    async fn client(&self) -> Result<Arc<Client>, Failure> {
        if let Some(client) = self.client.lock().as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        if self.failed.lock().is_some_and(|failed| failed.elapsed() < PAUSE) {
            return Err(Failure::Unreachable("the last connection failed just now".to_owned()));
        }
        let connected =
            tokio::time::timeout(CONNECT_TIME_MAX, self.config.connect(self.tls.clone()));
        let (client, connection) = match connected.await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(self.unreachable(text_of(&error))),
            Err(_) => return Err(self.unreachable("it does not answer".to_owned())),
        };
        // It ends with the client, or with an error that the next statement meets as well.
        drop(tokio::spawn(async move { drop(connection.await) }));
        let client = Arc::new(client);
        check_settings(&client).await?;
        *self.failed.lock() = None;
        *self.client.lock() = Some(Arc::clone(&client));
        Ok(client)
    }

    fn unreachable(&self, why: String) -> Failure {
        *self.failed.lock() = Some(Instant::now());
        Failure::Unreachable(why)
    }
}

/// Every connection: after a failover it is another server.
async fn check_settings(client: &Client) -> Result<(), Failure> {
    let rows = client.query_typed(schema::SETTINGS, &[]).await?;
    let Some(row) = rows.first() else { return Ok(()) };
    let (synchronous_commit, fsync): (&str, &str) = (row.get(0), row.get(1));
    let refused = |detail: &str| Err(Failure::Unsafe(format!("leads to a server {detail}")));
    if row.get(3) {
        return refused("that takes no writes: a standby, or one that only reads");
    }
    if synchronous_commit == "off" {
        return refused(
            "with synchronous_commit = off, which loses acknowledged writes in a crash",
        );
    }
    if synchronous_commit == "local" && row.get(2) {
        return refused(
            "with synchronous_commit = local and a synchronous standby, which may lack acknowledged writes when it takes over",
        );
    }
    if fsync == "off" {
        return refused("with fsync = off, which loses acknowledged writes in a crash");
    }
    Ok(())
}

/// TLS with the certificates of the machine, or those that `SSL_CERT_FILE` names.
fn tls_of_the_machine() -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::invalid("TLS", error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_leaves_the_machine_under_tls_alone() {
        let calls = Calls::new().unwrap();
        let mode =
            |url| DatabaseSession::new(calls.clone(), url).map(|one| one.config.get_ssl_mode());
        assert_eq!(mode("postgres://inlay@db.acme.com/inlay").unwrap(), SslMode::Require);
        assert_eq!(mode("postgres://inlay@localhost/inlay").unwrap(), SslMode::Disable);
        assert_eq!(mode("postgres://inlay@localhost,db/inlay").unwrap(), SslMode::Require);
        assert_eq!(mode("postgres://inlay@db/inlay?sslmode=disable").unwrap(), SslMode::Disable);
        for wrong in ["mysql://a/b", "postgres:///inlay", "postgres://a/b?colour=red"] {
            assert!(matches!(mode(wrong), Err(Error::Invalid { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_database_that_is_not_there_was_sent_nothing() {
        let url = "postgres://inlay@127.0.0.1:1/inlay";
        let session = Arc::new(DatabaseSession::new(Calls::new().unwrap(), url).unwrap());
        for _ in 0..2 {
            let done = session.run(|client| async move { client.execute("SELECT 1", &[]).await });
            assert!(matches!(done, Err(Failure::Unreachable(_))), "{done:?}");
        }
    }
}
