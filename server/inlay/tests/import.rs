//! `inlay import` beside a server: files of each format, run again, interrupted, and with rows that are refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "files of a user, not of the store")]

mod common;

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use common::{base_of, client, register};
use parquet::{
    data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use serde_json::{Value as Json, json};

struct Served {
    process: Child,
    base: String,
    key: String,
    directory: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server with an organisation, and a folder for files beside its data.
async fn serve() -> Served {
    serve_with(&[]).await
}

/// The same with settings.
async fn serve_with(settings: &[(&str, &str)]) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let mut command = common::command(&directory.path().join("data"));
    let (process, line) = common::start(command.envs(settings.iter().copied()));
    let base = base_of(&line);
    let key = register(&base).await;
    Served { process, base, key, directory }
}

impl Served {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inlay"));
        command.arg("import").args(["--url", &self.base]).args(arguments);
        command.env("INLAY_API_KEY", &self.key).current_dir(self.directory.path());
        command
    }

    fn import(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What an import that must work has said.
    fn imported(&self, arguments: &[&str]) -> String {
        let output = self.import(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// A number that the server has over all of time, of one tenant and event.
    async fn value(&self, parameters: &[(&str, &str)]) -> f64 {
        let fixed = [("period", "90d"), ("metric", "count")];
        let has = |name: &str| parameters.iter().any(|(known, _)| *known == name);
        let fixed = fixed.into_iter().filter(|(name, _)| !has(name));
        let all: Vec<(&str, &str)> = parameters.iter().copied().chain(fixed).collect();
        let url = format!("{}/v1/query", self.base);
        let request = client().get(url).query(&all).bearer_auth(&self.key);
        let body: Json = request.send().await.unwrap().json().await.unwrap();
        body["data"][0]["value"].as_f64().unwrap_or_else(|| panic!("{body}"))
    }
}

/// An hour ago, in seconds since 1970.
fn an_hour_ago() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    now.as_secs() - 3_600
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_stored_once_however_often_they_are_sent() {
    let served = serve().await;
    // Two of three rows have no id; all of one kind are alike.
    let lines: Vec<String> = (0..6_000)
        .map(|n| match n % 3 {
            0 => json!({"tenant_id": "t", "event_name": "e", "event_id": format!("e{n}")})
                .to_string(),
            _ => json!({"tenant_id": "t", "event_name": "e", "string_props": {"plan": "pro"}})
                .to_string(),
        })
        .collect();
    served.write("events.ndjson", &lines.join("\n"));
    let said = served.imported(&["events.ndjson"]);
    assert!(said.contains("6000 events stored, 0 were there before, 0 rows refused"), "{said}");
    let said = served.imported(&["events.ndjson", "--connections", "1"]);
    assert!(said.contains("0 events stored, 6000 were there before"), "{said}");
    // Compressed, from the middle.
    let zstd = zstd::encode_all(lines.join("\n").as_bytes(), 1).unwrap();
    fs::write(served.path("events.ndjson.zst"), zstd).unwrap();
    let said = served.imported(&["events.ndjson.zst", "--skip", "5000"]);
    assert!(said.contains("0 events stored, 1000 were there before"), "{said}");
    // Another row with the same contents is another event.
    let mut child =
        served.command(&["-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all((lines.join("\n") + "\n" + &lines[1]).as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("1 events stored, 6000 were there before"), "{said}");
    assert_eq!(served.value(&[("tenant_id", "t"), ("event_name", "e")]).await, 6_001.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_becomes_events_and_its_bad_rows_are_listed() {
    let served = serve().await;
    let at = an_hour_ago();
    let mut text = "account,created_at,plan,amount,note\n".to_owned();
    (0..1_500).for_each(|n| text += &format!("acme,{at},\"pro, new\",{}.5,x\n", n % 10));
    text +=
        &format!("acme,{at},pro,many,x\nacme,{at},pro\n,{at},pro,1,x\nacme,1650-01-01,pro,1,x\n");
    served.write("orders.csv", &text);
    let options = [
        "orders.csv",
        "--value",
        "event_name=order",
        "--field",
        "tenant_id=account",
        "--field",
        "timestamp=created_at",
        "--ignore",
        "note",
        "--refused",
        "refused.ndjson",
    ];
    let output = served.import(&options);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("4 rows were refused"), "{said}");
    assert!(said.contains("1500 events stored"), "{said}");
    let refused = fs::read_to_string(served.path("refused.ndjson")).unwrap();
    let mut refused: Vec<(u64, String)> = refused
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap())
        .map(|line| (line["row"].as_u64().unwrap(), line["message"].as_str().unwrap().to_owned()))
        .collect();
    refused.sort_unstable();
    assert_eq!(refused.iter().map(|row| row.0).collect::<Vec<_>>(), [1_501, 1_502, 1_503, 1_504]);
    assert!(refused[0].1.contains("amount is \"many\""), "{refused:?}");
    assert!(refused[1].1.contains("3 values of 5 columns"), "{refused:?}");
    assert!(refused[2].1.starts_with("tenant_id "), "{refused:?}");
    assert!(refused[3].1.starts_with("timestamp "), "{refused:?}");
    let of = [("tenant_id", "acme"), ("event_name", "order"), ("f_plan", "pro, new")];
    assert_eq!(served.value(&of).await, 1_500.0);
    let sum = [&of[..], &[("metric", "sum"), ("numeric_prop", "amount")]].concat();
    assert_eq!(served.value(&sum).await, 1_500.0 * 5.0);
    // Options that mean nothing say so before anything is sent.
    for (arguments, why) in [
        (vec!["orders.csv", "--field", "tenant_id=customer"], "there is no column customer"),
        (vec!["orders.csv", "--field", "tenant=account"], "tenant is no field of an event"),
        (vec!["orders.txt"], "--format"),
        (vec!["missing.csv"], "cannot read missing.csv"),
        (vec!["orders.csv", "--format", "parquet"], "is not a Parquet file"),
    ] {
        let output = served.import(&arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
    }
}

/// Writes a file of `count` rows with an account, a time in microseconds, an amount and a map of labels.
fn write_parquet(path: &Path, count: usize, at: u64) {
    let schema = "message events {
        required binary tenant_id (UTF8);
        required int64 timestamp (TIMESTAMP_MICROS);
        optional double amount;
        required group labels (MAP) {
            repeated group key_value { required binary key (UTF8); optional binary value (UTF8); }
        }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = fs::File::create(path).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let texts = |text: &str| vec![ByteArray::from(text); count];
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&texts("acme"), None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let times = vec![at as i64 * 1_000_000; count];
    column.typed::<Int64Type>().write_batch(&times, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let is_there: Vec<i16> = (0..count).map(|n| (n % 2) as i16).collect();
    let amounts = vec![2.5; count / 2];
    column.typed::<DoubleType>().write_batch(&amounts, Some(&is_there), None).unwrap();
    column.close().unwrap();
    for (text, level) in [("plan", 1), ("pro", 2)] {
        let mut column = group.next_column().unwrap().unwrap();
        let (defined, repeated) = (vec![level; count], vec![0; count]);
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&texts(text), Some(&defined), Some(&repeated)).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parquet_has_types_and_maps() {
    let served = serve().await;
    write_parquet(&served.path("events.parquet"), 2_000, an_hour_ago());
    let said = served.imported(&["events.parquet", "--value", "event_name=order"]);
    assert!(said.contains("2000 events stored"), "{said}");
    let of = [("tenant_id", "acme"), ("event_name", "order"), ("f_plan", "pro")];
    assert_eq!(served.value(&of).await, 2_000.0);
    let sum = [&of[..], &[("metric", "sum"), ("numeric_prop", "amount")]].concat();
    assert_eq!(served.value(&sum).await, 2_500.0);
    // A file that is cut off is damage, and not fewer rows.
    let whole = fs::read(served.path("events.parquet")).unwrap();
    fs::write(served.path("cut.parquet"), &whole[..whole.len() / 2]).unwrap();
    let output = served.import(&["cut.parquet", "--value", "event_name=order"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("is not a Parquet file"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_import_goes_on_where_it_says() {
    let served = serve().await;
    let mut child = served
        .command(&["-", "--connections", "2"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line =
        |n: usize| format!("{{\"tenant_id\":\"t\",\"event_name\":\"e\",\"user_id\":\"u{n}\"}}\n");
    let mut input = child.stdin.take().unwrap();
    for n in 0..5_000 {
        input.write_all(line(n).as_bytes()).unwrap();
    }
    input.flush().unwrap();
    let began = Instant::now();
    let of = [("tenant_id", "t"), ("event_name", "e")];
    while served.value(&of).await < 4_000.0 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing arrives");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert!(!child.wait().unwrap().success());
    drop(input);
    let behind = said.split("--skip ").nth(1).unwrap_or_else(|| panic!("{said}"));
    let skip = behind.split_whitespace().next().unwrap().to_owned();
    assert!(skip.parse::<u64>().unwrap() >= 3_000, "{said}");
    let all: String = (0..6_000).map(line).collect();
    served.write("all.ndjson", &all);
    served.imported(&["all.ndjson", "--skip", &skip]);
    assert_eq!(served.value(&of).await, 6_000.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_refused_stop_no_others_and_each_is_accounted_for() {
    let served = serve().await;
    // A batch without a good event, one with a bad one alone, and rows that options complete.
    let mut lines = vec![r#"{"tenant_id":"t"}"#.to_owned(); 1_000];
    lines.extend(vec![r#"{"tenant_id":"t","event_name":"e"}"#.to_owned(); 1_000]);
    lines.push(r#"{"tenant_id":"t","event_name":"e","timestamp":"1650-01-01"}"#.to_owned());
    served.write("bad.ndjson", &lines.join("\n"));
    let output = served.import(&["bad.ndjson", "--refused", "refused.ndjson"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("1001 rows were refused"), "{said}");
    assert!(said.contains("1000 events stored, 0 were there before, 1001 rows refused"), "{said}");
    let refused = fs::read_to_string(served.path("refused.ndjson")).unwrap();
    assert_eq!(refused.lines().count(), 1_001);
    assert!(refused.contains(r#""message":"event_name is required","row":1}"#), "{refused}");
    assert!(refused.contains(r#""message":"timestamp lies before 1970","row":2001}"#), "{refused}");
    // What goes on adds to the list, and a name is kept out of harm.
    served.import(&["bad.ndjson", "--refused", "refused.ndjson", "--skip", "2000"]);
    let refused = fs::read_to_string(served.path("refused.ndjson")).unwrap();
    assert_eq!(refused.lines().count(), 1_002);
    let output = served.import(&["bad.ndjson", "--refused", "./bad.ndjson"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("names the file that is imported"), "{said}");
    assert_eq!(fs::read_to_string(served.path("bad.ndjson")).unwrap().lines().count(), 2_001);
    // Without a list the first batch says that nothing fits.
    let output = served.import(&["bad.ndjson"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("none of the first 1000 rows is an event"), "{said}");
    assert!(!output.status.success() && said.contains("--skip 0"), "{said}");
    // Options complete empty events, and change no ids: what was corrected is stored once.
    served.write("few.ndjson", "{}\n\n{\"tenant_id\":\"u\"}\n");
    let output = served.import(&["few.ndjson", "--value", "event_name=e"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("1 events stored") && said.contains("row 1: tenant_id"), "{said}");
    let said =
        served.imported(&["few.ndjson", "--value", "event_name=e", "--value", "tenant_id=v"]);
    assert!(said.contains("1 events stored, 1 were there before"), "{said}");
    let output = served.import(&["few.ndjson", "--skip", "7"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("--skip 7, and there are 3 rows"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_requests_is_waited_for() {
    let served = serve_with(&[("INLAY_RATE_LIMITS", "ingest=2")]).await;
    let line = "{\"tenant_id\":\"t\",\"event_name\":\"e\"}\n";
    served.write("many.ndjson", &line.repeat(6_000));
    let said = served.imported(&["many.ndjson", "--connections", "6"]);
    assert!(said.contains("6000 events stored, 0 were there before, 0 rows refused"), "{said}");
    assert_eq!(served.value(&[("tenant_id", "t"), ("event_name", "e")]).await, 6_000.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_do_not_take_it_are_told_apart() {
    let mut served = serve().await;
    served.write("one.ndjson", "{\"tenant_id\":\"t\",\"event_name\":\"e\"}\n");
    let right = std::mem::replace(&mut served.key, "inlay_admin_wrong".to_owned());
    let output = served.import(&["one.ndjson"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains("401") && said.contains("--skip 0"),
        "{said}"
    );
    served.key = right;
    served.imported(&["one.ndjson"]);
}
