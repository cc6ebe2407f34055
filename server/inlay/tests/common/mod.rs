//! A server of the binary that was just built, for tests of processes.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::json;

/// `inlay serve` on free ports, with a data directory.
pub fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_inlay"));
    command
        .arg("serve")
        .env("INLAY_DATA_DIR", directory)
        .env("INLAY_HTTP_ADDR", "127.0.0.1:0")
        .env("INLAY_GRPC_ADDR", "127.0.0.1:0")
        .env("INLAY_LOG", "warn");
    command
}

/// A server that is ready, and the line that says where: `Inlay is ready at http://… (gRPC on …)`.
pub fn start(command: &mut Command) -> (Child, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

/// The address of HTTP in that line.
pub fn base_of(line: &str) -> String {
    line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned()
}

pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap()
}

/// Registers an organisation; its admin key.
pub async fn register(base: &str) -> String {
    let body = json!({"email": "p@example.com", "password": "long enough password", "name": "P", "org_name": "P"});
    let reply = client().post(format!("{base}/v1/auth/register")).json(&body).send().await.unwrap();
    let body: serde_json::Value = reply.json().await.unwrap();
    body["api_key"]["key"].as_str().unwrap().to_owned()
}
