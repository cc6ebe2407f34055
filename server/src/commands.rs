//! The commands beside `serve`: backup, restore, verify and health.
//!
//! A backup is taken by the running server, which is asked through its gRPC service. A restore and a
//! verification work on directories; a directory that a server uses is verified by that server.
//!
//! ```text
//! $ inlay backup /backups/28
//! backup of 21 files, 1956789 bytes, in /backups/28: everything up to record 115 (17 linked, 0 from the earlier backup, 4 copied)
//! $ inlay restore /backups/28 --data-dir ./data
//! restored 21 files, everything up to record 115
//! 15 segments with 64541 rows, 2 id runs with 64540 ids, 1 checkpoints, 0 log records
//! everything is as it was written
//! $ inlay health
//! ready
//! ```
//!
//! Results go to standard output, errors to standard error with exit code 1. Of a backup with one damaged byte:
//!
//! ```text
//! $ inlay verify /backups/28
//! 15 segments with 64541 rows, 2 id runs with 64540 ids, 1 checkpoints, 0 log records
//! 21 files of the backup's list
//! seg/2026-11-26/01a21f84-d9c8-70ca-a973-34fb2ae803f9.seg: differs from the backup's list
//! seg/2026-11-26/01a21f84-d9c8-70ca-a973-34fb2ae803f9.seg: offset 64: checksum mismatch in section 1
//! Error: 2 problems
//! ```

use std::{
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Args;
use inlay_engine::{Inspection, OsVfs, VerifyReport, Vfs as _, restore as restore_backup};
use inlay_proto::v1::{BackupProgress, BackupRequest, VerifyRequest, inlay_client::InlayClient};
use tonic::{
    Request,
    codegen::tokio_stream::StreamExt as _,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

// The doc comments of these structs and of their fields are the help that `inlay backup --help` prints.
/// Where the running server is.
#[derive(Debug, Clone, Args)]
pub struct Server {
    /// Address of the running server's gRPC service
    #[arg(long, env = "INLAY_GRPC_ADDR", default_value = "127.0.0.1:8081")]
    pub grpc_addr: SocketAddr,
    /// Its bearer token, where it asks for one
    #[arg(long, env = "INLAY_GRPC_TOKEN", hide_env_values = true)]
    pub grpc_token: Option<String>,
}

/// What `inlay backup` can be told.
#[derive(Debug, Clone, Args)]
pub struct Backup {
    /// Where to: a directory that is empty or does not exist yet
    pub directory: PathBuf,
    /// An earlier backup: files that it has are linked from it instead of copied
    #[arg(long)]
    pub since: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
}

/// What `inlay restore` can be told.
#[derive(Debug, Clone, Args)]
pub struct Restore {
    /// Directory of the backup
    pub directory: PathBuf,
    /// The data directory: it is empty or does not exist yet
    #[arg(long, env = "INLAY_DATA_DIR", default_value = "./data")]
    pub data_dir: PathBuf,
}

/// What `inlay verify` can be told.
#[derive(Debug, Clone, Args)]
pub struct Verify {
    /// A backup or a data directory; the data directory of the settings when left out
    pub directory: Option<PathBuf>,
    #[arg(long, env = "INLAY_DATA_DIR", default_value = "./data")]
    data_dir: PathBuf,
    #[command(flatten)]
    server: Server,
}

/// What `inlay health` can be told.
#[derive(Debug, Clone, Args)]
pub struct Health {
    /// Address at which the server listens
    #[arg(long, env = "INLAY_HTTP_ADDR", default_value = "127.0.0.1:8080")]
    pub http_addr: SocketAddr,
    /// Its certificate, where it speaks HTTPS; it is not checked, since the server is asked by its address
    #[arg(long, env = "INLAY_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
}

/// Time in which a server answers that can work.
const HEALTH_TIME_MAX: Duration = Duration::from_secs(5);

/// Asks the running server whether it is ready: for supervisors of containers, which see the exit code.
///
/// Errors: when no server answers within 5 s, or one that is not ready.
/// `inlay health --http-addr 127.0.0.1:1` fails with `no server answers at http://127.0.0.1:1/readyz`. Where the store cannot
/// write, the error has the status 503 and the body of the answer.
pub async fn health(command: &Health) -> anyhow::Result<()> {
    let scheme = if command.tls_cert.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}/readyz", command.http_addr);
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(HEALTH_TIME_MAX)
        // Nothing secret is sent, and a certificate names a host, not an address.
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let answer = client.get(&url).send().await;
    let answer = answer.with_context(|| format!("no server answers at {url}"))?;
    let status = answer.status();
    if !status.is_success() {
        bail!("{url} answered {status}: {}", answer.text().await.unwrap_or_default());
    }
    say("ready")
}

/// Asks the running server for a backup and reports its progress: a line such as `300 of 4120 files` for each hundred files.
///
/// Both paths become absolute first, since the server resolves them on its machine, not in this working directory.
///
/// Errors: no server at the gRPC address; a directory that is not empty (`directory /backups/28 is not empty`); a `since` that
/// is no backup; a stream that ends before its last message, which has `done`.
pub async fn backup(command: &Backup) -> anyhow::Result<()> {
    let since = command.since.as_deref().map(std::path::absolute).transpose()?;
    let directory = std::path::absolute(&command.directory)?;
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("{} is not UTF-8", path.display()))
    };
    let request = BackupRequest {
        directory: text(&directory)?,
        since: since.as_deref().map(text).transpose()?.unwrap_or_default(),
    };
    let mut server = connect(&command.server).await?;
    let request = server.request(request);
    let mut stream = server.client.backup(request).await.map_err(refused)?.into_inner();
    let mut last = BackupProgress::default();
    while let Some(now) = stream.next().await.transpose().map_err(refused)? {
        if now.files / 100 > last.files / 100 {
            say(&format!("{} of {} files", now.files, now.files_total))?;
        }
        last = now;
    }
    if !last.done {
        bail!("the server ended before the backup was whole");
    }
    say(&format!(
        "backup of {} files, {} bytes, in {}: everything up to record {} ({} linked, {} from the \
         earlier backup, {} copied)",
        last.files,
        last.bytes,
        directory.display(),
        last.lsn,
        last.linked,
        last.reused,
        last.files - last.linked - last.reused,
    ))
}

/// Copies a backup into an empty data directory and verifies the copy.
///
/// Errors: a directory without the list `BACKUP` (`BACKUP does not exist: this is not a backup, or one that did not finish`), a
/// target that is not empty, and whatever [`verify()`] finds.
pub fn restore(command: &Restore) -> anyhow::Result<()> {
    let (from, to) = (&command.directory, &command.data_dir);
    let target = OsVfs::new(to).with_context(|| format!("cannot use {}", to.display()))?;
    let list = restore_backup(&OsVfs::existing(from), &target)
        .with_context(|| format!("cannot restore {} into {}", from.display(), to.display()))?;
    say(&format!("restored {} files, everything up to record {}", list.files.len(), list.lsn))?;
    verify_directory(to)
}

/// Checks a backup or a data directory: every checksum and every reference.
///
/// A directory with the file `BACKUP` is a backup and is read here, as is a data directory that no server has locked. Otherwise the
/// server that has the lock verifies its own directory, since its files change meanwhile.
///
/// Errors: any problem found, after one line for each of them.
pub async fn verify(command: &Verify) -> anyhow::Result<()> {
    let directory = command.directory.as_deref().unwrap_or(&command.data_dir);
    let is_backup = directory.join("BACKUP").exists();
    if is_backup || !is_in_use(directory) {
        return verify_directory(directory);
    }
    let mut server = connect(&command.server).await?;
    let request = server.request(VerifyRequest {});
    let report = server.client.verify(request).await.map_err(refused)?.into_inner();
    let problems = report.problems.into_iter();
    conclude(&VerifyReport {
        segments: report.segments,
        of_other_minor: report.of_other_minor,
        rows: report.rows,
        id_runs: report.id_runs,
        ids: report.ids,
        checkpoints: report.checkpoints,
        records: report.records,
        backup_files: None,
        unnamed: report.unnamed,
        problems: problems
            .map(|one| inlay_engine::Problem { place: one.place, detail: one.detail })
            .collect(),
    })
}

/// Whether a server has the lock of a data directory.
/// Taking the lock succeeds with nothing where another process has it. A missing lock file is no data directory in use, and must
/// not be created by asking.
fn is_in_use(directory: &Path) -> bool {
    directory.join("LOCK").exists()
        && OsVfs::existing(directory).lock("LOCK").is_ok_and(|lock| lock.is_none())
}

fn verify_directory(directory: &Path) -> anyhow::Result<()> {
    let inspection = Inspection::open(OsVfs::existing(directory))
        .with_context(|| format!("cannot read {}", directory.display()))?;
    conclude(&inspection.verify(&mut |_| ()))
}

/// Prints a report: sizes, notes, then one line for each problem. An error when there is a problem, for the exit code.
fn conclude(report: &VerifyReport) -> anyhow::Result<()> {
    say(&format!(
        "{} segments with {} rows, {} id runs with {} ids, {} checkpoints, {} log records",
        report.segments,
        report.rows,
        report.id_runs,
        report.ids,
        report.checkpoints,
        report.records,
    ))?;
    if report.of_other_minor > 0 {
        let count = report.of_other_minor;
        say(&format!(
            "rollups of {count} segments were chosen by another build: not computed again"
        ))?;
    }
    if let Some(files) = report.backup_files {
        say(&format!("{files} files of the backup's list"))?;
    }
    for path in &report.unnamed {
        say(&format!("{path}: nothing names it; the next start removes it"))?;
    }
    for problem in &report.problems {
        say(&format!("{}: {}", problem.place, problem.detail))?;
    }
    match report.problems.len() {
        0 => say("everything is as it was written"),
        count => bail!("{count} problems"),
    }
}

/// A connection to the gRPC service, and the header that every request of it carries: `authorization: Bearer <token>`.
struct Connection {
    client: InlayClient<Channel>,
    authorization: Option<MetadataValue<Ascii>>,
}

impl Connection {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(value) = &self.authorization {
            request.metadata_mut().insert("authorization", value.clone());
        }
        request
    }
}

/// Connects to the gRPC service, without TLS: its address is a loopback address, or lies in a network of the operator.
///
/// Errors: nobody listens there; a token that has characters which no header may have.
async fn connect(server: &Server) -> anyhow::Result<Connection> {
    let address = format!("http://{}", server.grpc_addr);
    let channel = Endpoint::from_shared(address)?.connect().await.with_context(|| {
        format!("no server answers at {} (gRPC); is it running?", server.grpc_addr)
    })?;
    let token = server.grpc_token.as_ref();
    let authorization = token
        .map(|token| format!("Bearer {token}").parse())
        .transpose()
        .context("the token cannot be sent in a header")?;
    Ok(Connection { client: InlayClient::new(channel), authorization })
}

/// The message of a gRPC status as an error; the code says nothing that the message does not.
fn refused(status: tonic::Status) -> anyhow::Error {
    anyhow::anyhow!("{}", status.message())
}

/// Prints one line. An error where standard output is closed, such as by `inlay verify | head -1`.
fn say(line: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{line}").context("cannot write to the terminal")
}
