//! Real processes: killed without warning, two on one folder, stopped in the middle of work.
//!
//! What was acknowledged is kept in a ledger outside of the process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use common::{base_of, client, command, register};
use serde_json::json;

/// Kills in one run; `INLAY_KILLS` asks for more.
const KILLS: u32 = 8;

struct Process {
    child: Child,
    base: String,
    grpc: String,
}

fn start(directory: &Path) -> Process {
    let (child, line) = common::start(&mut command(directory));
    let grpc = line.split("(gRPC on ").nth(1).unwrap().trim().trim_end_matches(')').to_owned();
    Process { child, base: base_of(&line), grpc }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn value(base: &str, key: &str, metric: &str) -> i64 {
    let url = format!(
        "{base}/v1/query?tenant_id=t&event_name=e&period=90d&numeric_prop=n&metric={metric}"
    );
    let body: serde_json::Value =
        client().get(url).bearer_auth(key).send().await.unwrap().json().await.unwrap();
    body["data"][0]["value"].as_i64().unwrap_or_else(|| panic!("{body}"))
}

/// Posts batches until the server is gone. Gives how many were acknowledged, and whether one was
/// under way.
async fn pour(base: String, key: String, worker: usize, round: u32) -> (u32, bool) {
    let client = client();
    for number in 0.. {
        let events: Vec<_> = (0..10)
            .map(|n| json!({"tenant_id": "t", "event_name": "e", "event_id": format!("{round}/{worker}/{number}/{n}"), "numeric_props": {"n": 1}}))
            .collect();
        let sent = client
            .post(format!("{base}/v1/events"))
            .bearer_auth(&key)
            .json(&json!({"events": events}))
            .send()
            .await;
        match sent {
            Ok(reply) if reply.status() == 200 => {}
            _ => return (number, true),
        }
    }
    unreachable!("the loop ends when the server is gone")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_events_survive_kills_and_count_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = start(directory.path());
    let key = register(&process.base).await;
    let kills =
        std::env::var("INLAY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let (mut acknowledged, mut under_way) = (0, 0);
    for round in 0..kills {
        let workers: Vec<_> = (0..4)
            .map(|worker| tokio::spawn(pour(process.base.clone(), key.clone(), worker, round)))
            .collect();
        tokio::time::sleep(Duration::from_millis(150 + u64::from(round) * 37 % 200)).await;
        process.child.kill().unwrap();
        process.child.wait().unwrap();
        for worker in workers {
            let (done, cut) = worker.await.unwrap();
            acknowledged += i64::from(done) * 10;
            under_way += i64::from(cut) * 10;
        }
        process = start(directory.path());
        let count = value(&process.base, &key, "count").await;
        assert!(
            (acknowledged..=acknowledged + under_way).contains(&count),
            "{count} events, {acknowledged} acknowledged"
        );
        assert_eq!(count % 10, 0, "a batch is there whole or not at all");
        assert_eq!(count, value(&process.base, &key, "sum").await);
        // What was under way is known now: it counts from here on.
        (acknowledged, under_way) = (count, 0);
    }
    assert!(acknowledged > 0);
}

#[tokio::test]
async fn a_second_process_is_refused_and_the_first_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let process = start(directory.path());
    let second = command(directory.path()).output().unwrap();
    assert!(!second.status.success());
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(text.contains("another process"), "{text}");
    register(&process.base).await;
}

#[tokio::test]
async fn a_termination_signal_writes_everything_and_exits_with_zero() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = start(directory.path());
    let key = register(&process.base).await;
    let event =
        json!({"events": [{"tenant_id": "t", "event_name": "e", "numeric_props": {"n": 1}}]});
    let sent = client()
        .post(format!("{}/v1/events", process.base))
        .bearer_auth(&key)
        .json(&event)
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 200);
    let signalled =
        Command::new("kill").args(["-TERM", &process.child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
    let process = start(directory.path());
    assert_eq!(value(&process.base, &key, "count").await, 1);
}

/// Runs another command of the binary; gives its exit code and everything that it wrote.
fn inlay(arguments: &[&str], process: &Process, directory: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_inlay"))
        .args(arguments)
        .env("INLAY_DATA_DIR", directory)
        .env("INLAY_GRPC_ADDR", &process.grpc)
        .env("INLAY_HTTP_ADDR", process.base.trim_start_matches("http://"))
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_restored_and_verified_by_the_commands() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let process = start(&at("data"));
    let key = register(&process.base).await;
    let worker = tokio::spawn(pour(process.base.clone(), key.clone(), 0, 0));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = value(&process.base, &key, "count").await;
    let (ok, said) = inlay(&["backup", &text("one")], &process, &at("data"));
    assert!(ok && said.contains("everything up to record"), "{said}");
    let after = value(&process.base, &key, "count").await;
    assert!(after > before, "events came in meanwhile");
    let (ok, said) =
        inlay(&["backup", &text("two"), "--since", &text("one")], &process, &at("data"));
    assert!(ok, "{said}");
    let (ok, said) = inlay(&["backup", &text("one")], &process, &at("data"));
    assert!(!ok && said.contains("is not empty"), "{said}");
    // A data directory in use is verified by the server that uses it.
    let (ok, said) = inlay(&["verify"], &process, &at("data"));
    assert!(ok && said.contains("everything is as it was written"), "{said}");
    worker.abort();
    drop(process);

    let stopped = start(&at("other"));
    let (ok, said) = inlay(&["restore", &text("one")], &stopped, &at("restored"));
    assert!(ok, "{said}");
    let (ok, said) = inlay(&["restore", &text("one")], &stopped, &at("restored"));
    assert!(!ok && said.contains("is not empty"), "{said}");
    let (ok, said) = inlay(&["verify", &text("two")], &stopped, &at("restored"));
    assert!(ok && said.contains("files of the backup's list"), "{said}");
    let restored = start(&at("restored"));
    let count = value(&restored.base, &key, "count").await;
    assert!((before..=after).contains(&count), "{before} <= {count} <= {after}");
    assert_eq!(count % 10, 0, "batches are whole");
    assert_eq!(count, value(&restored.base, &key, "sum").await);

    // One flipped bit in a shared file is found, and named.
    let damaged = at("two/SUPER.a");
    #[expect(clippy::disallowed_methods, reason = "a test damages the files themselves")]
    {
        let mut bytes = std::fs::read(&damaged).unwrap();
        bytes[100] ^= 1;
        std::fs::write(&damaged, bytes).unwrap();
    }
    let (ok, said) = inlay(&["verify", &text("two")], &stopped, &at("restored"));
    assert!(!ok && said.contains("SUPER.a"), "{said}");
    let (ok, said) = inlay(&["restore", &text("two")], &stopped, &at("elsewhere"));
    assert!(!ok && said.contains("SUPER.a"), "{said}");
    let (ok, said) = inlay(&["restore", &text("data")], &stopped, &at("elsewhere"));
    assert!(!ok && said.contains("not a backup"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_output_nobody_reads_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut child = command(directory.path())
        .env("INLAY_HTTP_ADDR", address.to_string())
        .env("INLAY_LOG", "debug")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both pipes break before the first line.
    drop((child.stdout.take(), child.stderr.take()));
    let process = Process { child, base: format!("http://{address}"), grpc: String::new() };
    let ready = format!("{}/readyz", process.base);
    let began = std::time::Instant::now();
    while !client().get(&ready).send().await.is_ok_and(|reply| reply.status() == 200) {
        assert!(began.elapsed() < Duration::from_secs(30), "it did not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let key = register(&process.base).await;
    assert!(key.starts_with("inlay_admin_"), "{key}");
}

#[test]
fn health_is_the_servers_answer_as_an_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = start(directory.path());
    let (ok, said) = inlay(&["health"], &process, directory.path());
    assert!(ok && said.contains("ready"), "{said}");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    let (ok, said) = inlay(&["health"], &process, directory.path());
    assert!(!ok && said.contains("no server answers at") && said.contains("/readyz"), "{said}");
}

#[test]
fn the_manual_and_the_completions_know_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_inlay")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let commands = ["serve", "import", "backup", "restore", "verify", "health", "completions"];
    for (shell, start) in
        [("bash", "_inlay()"), ("zsh", "#compdef inlay"), ("fish", "complete -c inlay")]
    {
        let text = run(&["completions", shell]);
        assert!(text.contains(start), "{shell}: {text}");
        assert!(commands.iter().all(|command| text.contains(command)), "{shell}: {text}");
    }
    run(&["manual", directory.path().to_str().unwrap()]);
    for command in commands {
        let page = directory.path().join(format!("inlay-{command}.1"));
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
    let serve = std::fs::read_to_string(directory.path().join("inlay-serve.1")).unwrap();
    assert!(serve.contains("INLAY_DATA_DIR"), "{serve}");
}

#[tokio::test]
async fn settings_that_mean_nothing_stop_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |name: &str, value: &str| {
        let output = command(directory.path()).env(name, value).output().unwrap();
        assert!(!output.status.success(), "{name}={value}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused("INLAY_DATADIR", "x").contains("INLAY_DATADIR"));
    assert!(refused("INLAY_RATE_LIMITS", "queries=1").contains("queries"));
    assert!(refused("INLAY_GRPC_ADDR", "0.0.0.0:0").contains("loopback"));
}

/// A directory that nobody synced the name of may be gone after a loss of power, with all that was
/// acknowledged in it.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_new_data_directory_is_durable_by_name() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let trace = root.join("trace");
    match Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status() {
        Ok(status) if status.success() => {}
        Ok(_) => return eprintln!("skipped: may not trace processes"),
        Err(_) => {
            assert!(std::env::var_os("CI").is_none(), "CI installs strace");
            return eprintln!("skipped: no strace on the path");
        }
    }
    let data = root.join("one/two/data");
    let mut child = Command::new("strace")
        .args(["-D", "-f", "-qq", "-y", "-e", "trace=fsync", "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_inlay"))
        .arg("serve")
        .envs(command(&data).get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("ready"), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
    let synced = std::fs::read_to_string(&trace).unwrap();
    for directory in ["", "/one", "/one/two", "/one/two/data", "/one/two/data/wal"] {
        let name = format!("<{}{directory}>)", root.display());
        assert!(synced.contains(&name), "the names in {name} are durable:\n{synced}");
    }
}
