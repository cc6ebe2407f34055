//! The same tests over three processes of one store: a database, a bucket, and a spreader before them that gives each connection to the next one.
//!
//! ```text
//! INLAY_TEST_POSTGRES=postgres://inlay@127.0.0.1:5432   each test server has a database of its own there
//! INLAY_TEST_BUCKET=http://127.0.0.1:5000               and a prefix of the bucket `rig`
//! ```
//!
//! A client of the tests keeps no connection then, so that no two requests of it meet the same process. Mails go to a mail server of the test, which writes them where one process
//! of its own would: such a store needs one.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Processes of one store.
pub const NODES: usize = 3;
/// Names of databases and prefixes, within this process.
static STORES: AtomicUsize = AtomicUsize::new(0);

/// Whether test servers consist of several processes with one store.
pub fn is_spread() -> bool {
    std::env::var_os("INLAY_TEST_POSTGRES").is_some()
}

/// Whether each process has a store of its own after all: the tests must fail.
pub fn is_apart() -> bool {
    std::env::var_os("INLAY_TEST_APART").is_some()
}

/// Where a store of a test is, with what stands before its processes.
pub struct Spread {
    /// The database with its log.
    pub metadata_url: String,
    /// The bucket with its files.
    pub events_url: String,
    /// Where clients connect.
    pub address: SocketAddr,
    /// Mail server of its processes.
    pub smtp_url: String,
    nodes: Arc<Mutex<Vec<SocketAddr>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Spread {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Spread {
    /// A new database and a new prefix; `None` where tests run with a store in a directory. Mails are written to `outbox`.
    pub async fn new(outbox: PathBuf) -> Option<Self> {
        let server = std::env::var("INLAY_TEST_POSTGRES").ok()?;
        let bucket = std::env::var("INLAY_TEST_BUCKET").unwrap();
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let name = format!("it_{}_{number}", std::process::id());
        let url = format!("{server}/postgres");
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        drop(client);
        connection.await.unwrap();
        let nodes: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
        let spreader = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mails = TcpListener::bind("127.0.0.1:0").await.unwrap();
        std::fs::create_dir_all(&outbox).unwrap();
        Some(Self {
            metadata_url: format!("{server}/{name}"),
            events_url: format!("s3://rig/{name}?region=us-east-1&endpoint={bucket}"),
            address: spreader.local_addr().unwrap(),
            smtp_url: format!("smtp://{}", mails.local_addr().unwrap()),
            nodes: Arc::clone(&nodes),
            tasks: vec![
                tokio::spawn(spread(spreader, nodes)),
                tokio::spawn(take_mails(mails, outbox)),
            ],
        })
    }

    /// From now on connections go to these.
    pub fn set_nodes(&self, nodes: Vec<SocketAddr>) {
        *self.nodes.lock().unwrap() = nodes;
    }
}

/// Gives each connection to the next process.
async fn spread(listener: TcpListener, nodes: Arc<Mutex<Vec<SocketAddr>>>) {
    let mut turn = 0;
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let node = {
            let nodes = nodes.lock().unwrap();
            turn += 1;
            nodes.get(turn % nodes.len().max(1)).copied()
        };
        let Some(node) = node else { continue };
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(node).await else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            join(client, server).await;
        });
    }
}

/// Gives each what the other sends, to the end. A server may answer and take no more of a request: its answer goes through, and the rest comes to nothing.
async fn join(client: TcpStream, server: TcpStream) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = tokio::spawn(async move {
        if tokio::io::copy(&mut from_client, &mut to_server).await.is_err() {
            let _ = tokio::io::copy(&mut from_client, &mut tokio::io::sink()).await;
        }
        let _ = to_server.shutdown().await;
    });
    let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    let _ = to_client.shutdown().await;
    let _ = tokio::time::timeout(Duration::from_secs(2), up).await;
}

/// A mail server that writes each mail to a file.
async fn take_mails(listener: TcpListener, outbox: PathBuf) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let outbox = outbox.clone();
        tokio::spawn(async move {
            // A client that goes away has sent no mail.
            let _ = take_mail(stream, &outbox).await;
        });
    }
}

/// The dialogue of SMTP, as far as a client of ours needs it.
async fn take_mail(stream: TcpStream, outbox: &Path) -> std::io::Result<()> {
    static MAILS: AtomicUsize = AtomicUsize::new(0);
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 tests\r\n").await?;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let command = line.trim_end().to_ascii_uppercase();
        if command == "QUIT" {
            return stream.write_all(b"221 bye\r\n").await;
        }
        if command != "DATA" {
            stream.write_all(b"250 tests\r\n").await?;
            continue;
        }
        stream.write_all(b"354 go on\r\n").await?;
        let mut mail = String::new();
        loop {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            match line.as_str() {
                ".\r\n" => break,
                text => mail.push_str(text.strip_prefix('.').unwrap_or(text)),
            }
        }
        // The line break before the end is not a part of the mail.
        mail.truncate(mail.trim_end_matches("\r\n").len());
        mail.push_str("\r\n");
        let number = MAILS.fetch_add(1, Ordering::Relaxed);
        // Whole or not at all: a test may read the folder at any time.
        let name = outbox.join(format!("{number:08}.eml"));
        let unfinished = outbox.with_file_name(format!("{number:08}.unfinished"));
        tokio::fs::write(&unfinished, mail).await?;
        tokio::fs::rename(&unfinished, name).await?;
        stream.write_all(b"250 taken\r\n").await?;
    }
}
