//! A PostgreSQL server of its own for each test: on a free port, in a folder that goes with it.
//!
//! Where PostgreSQL is not installed a test is passed over; in CI that is a failure.

use std::{
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A running server, which ends with the value.
pub struct Postgres {
    /// Its database `inlay`, as a URL.
    pub url: String,
    programs: PathBuf,
    directory: tempfile::TempDir,
    port: u16,
}

/// Cuts connections until it is dropped.
pub struct Cutter(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Drop for Cutter {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().map(JoinHandle::join).transpose().expect("a thread that cuts connections");
    }
}

impl Postgres {
    /// Starts one; `None` where it is not installed.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(std::env::var_os("CI").is_none(), "PostgreSQL is not installed");
            eprintln!("passed over: PostgreSQL is not installed");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("postgres://inlay@127.0.0.1:{port}/inlay");
        let this = Self { url, programs, directory, port };
        if is_root() {
            std::fs::set_permissions(this.directory.path(), PermissionsExt::from_mode(0o755))
                .unwrap();
            std::fs::create_dir(this.home()).unwrap();
            run(Command::new("chown").arg("postgres").arg(this.home()));
        } else {
            std::fs::create_dir(this.home()).unwrap();
        }
        let data = this.data();
        this.program("initdb", &["-D", &data, "-A", "trust", "-U", "inlay", "--no-sync"]);
        this.begin();
        this.ask("postgres", "CREATE DATABASE inlay");
        Some(this)
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("postgres")
    }

    fn data(&self) -> String {
        self.home().join("data").display().to_string()
    }

    fn begin(&self) {
        let options =
            format!("-p {} -k {} -c listen_addresses=127.0.0.1", self.port, self.home().display());
        let log = self.home().join("log").display().to_string();
        self.program("pg_ctl", &["-D", &self.data(), "-o", &options, "-l", &log, "-w", "start"]);
    }

    /// Ends all processes without a checkpoint, and starts again.
    pub fn crash(&self) {
        self.program("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
        self.begin();
    }

    /// What a statement answers, as text.
    pub fn sql(&self, statement: &str) -> String {
        self.ask("inlay", statement)
    }

    /// As [`Postgres::sql`], in another database.
    pub fn ask(&self, database: &str, statement: &str) -> String {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-h", "127.0.0.1", "-U", "inlay", "-At", "-d", database, "-c", statement]);
        run(command.args(["-p", &self.port.to_string()]))
    }

    /// Ends a connection of the process under test every few milliseconds.
    pub fn cut_now_and_then(&self) -> Cutter {
        let ended = Arc::new(AtomicBool::new(false));
        let (until, programs, port) = (Arc::clone(&ended), self.programs.clone(), self.port);
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                                 WHERE application_name = 'inlay' ORDER BY random() LIMIT 1";
                let mut command = Command::new(programs.join("psql"));
                command.args(["-h", "127.0.0.1", "-U", "inlay", "-d", "inlay", "-c", statement]);
                // It fails while the database is away.
                let _ = command.args(["-p", &port.to_string()]).output();
                thread::sleep(Duration::from_millis(5));
            }
        });
        Cutter(ended, Some(thread))
    }

    /// A program of PostgreSQL, as the user that it asks for: none of them runs as root.
    fn program(&self, name: &str, arguments: &[&str]) {
        let program = self.programs.join(name);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        // The server inherits what it is started with; a pipe would keep its reader waiting.
        run(command.args(arguments).current_dir("/"));
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.program("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0)
}

/// The newest version that is installed, as Debian does it.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions.flatten().map(|one| one.path().join("bin")).collect();
    found.retain(|path: &PathBuf| Path::exists(&path.join("initdb")));
    found.sort();
    found.pop()
}

/// What a command writes; it must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}
