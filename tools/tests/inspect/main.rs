//! `inlay-inspect` as a program: what it says of a store whose content is known.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "damage is done behind the engine's back")]

mod store;

mod damage;
mod live;

use std::path::Path;

use serde_json::{Value, json};

use store::*;

#[test]
fn the_summary_counts_what_was_ingested() {
    let store = Store::new();
    let said = store.inspect(&["--json"]);
    let json = said.json();
    assert_eq!((said.code, &json["damage"]), (0, &Value::Array(vec![])));
    assert_eq!(json["levels"]["sealed"]["segments"], DAYS);
    assert_eq!(json["levels"]["sealed"]["rows"], DAYS as usize * EVENTS_A_DAY);
    assert_eq!(json["levels"]["fresh"]["rows"], 200);
    assert_eq!(json["all"]["rows"], IN_SEGMENTS);
    assert_eq!(json["id_runs"]["ids"], IN_SEGMENTS);
    assert_eq!(json["log"]["events_waiting"], WAITING);
    assert_eq!(
        (&json["day_first"], &json["day_last"]),
        (&"2024-09-30".into(), &"2024-10-04".into())
    );
    let size = |below: &str| -> u64 {
        store.files(below).iter().map(|path| path.metadata().unwrap().len()).sum()
    };
    assert_eq!(json["all"]["bytes"], size("seg"));
    assert_eq!(json["id_runs"]["bytes"], size("ids"));
    let text = store.inspect(&["summary"]).out;
    assert!(text.contains("2,200"), "{text}");
    assert!(text.contains("70 events in no segment yet"), "{text}");
    assert_eq!(store.inspect(&[]).out, text, "the summary is the default");
}

#[test]
fn segments_are_listed_by_day_with_their_rows() {
    let store = Store::new();
    let json = store.inspect(&["segments", "--json"]).json();
    let segments = json["segments"].as_array().unwrap();
    let days: Vec<_> = segments.iter().map(|one| one["day_first"].as_str().unwrap()).collect();
    assert_eq!(days, ["2024-09-30", "2024-10-01", "2024-10-02", "2024-10-03", "2024-10-04"]);
    for one in &segments[..4] {
        assert_eq!(one["rows"], EVENTS_A_DAY);
        assert_eq!(one["series"], 2);
        assert_eq!(one["level"], "sealed");
    }
    let text = store.inspect(&["segments"]).out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 5 + 2, "titles, segments, a line, totals");
    assert!(!lines[0].contains("damage"), "an empty column is left out");
    assert!(lines.last().unwrap().starts_with("5 segments"), "{text}");
}

#[test]
fn the_columns_add_up_to_the_files() {
    let store = Store::new();
    let json = store.inspect(&["columns", "--json"]).json();
    let lines = json["lines"].as_array().unwrap();
    let bytes: u64 = lines.iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
    let files = store.files("seg").into_iter().chain(store.files("ids"));
    assert_eq!(bytes, files.map(|path| path.metadata().unwrap().len()).sum::<u64>());
    assert_eq!(json["bytes"], bytes);
    assert_eq!(json["events"], IN_SEGMENTS);
    let times = lines.iter().find(|line| line["kind"] == "times").unwrap();
    assert_eq!(times["segments"], 5);
    let blocks: u64 =
        times["encodings"].as_object().unwrap().values().map(|one| one.as_u64().unwrap()).sum();
    assert_eq!(blocks, 5);
    assert!(lines.iter().any(|line| line["kind"] == "numbers" && line["column"] == "ms"));
    let text = store.inspect(&["columns"]).out;
    for word in ["event ids", "text codes", "model", "id runs: filters", "2,200 events", "100.0 %"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn one_segment_is_shown_down_to_its_blocks_and_series() {
    let store = Store::new();
    let segments = store.inspect(&["segments", "--json"]).json();
    let uuid = segments["segments"][0]["uuid"].as_str().unwrap().to_owned();
    // Names of one millisecond begin alike: all but the last group of digits surely differ.
    let prefix = uuid[..uuid.len() - 3].to_uppercase();
    let json = store.inspect(&["segment", &prefix, "--blocks", "--series", "--json"]).json();
    assert_eq!(json["segment"]["uuid"], uuid);
    let series = json["series"].as_array().unwrap();
    let tenants: Vec<_> = series.iter().map(|one| one["tenant"].as_str().unwrap()).collect();
    assert_eq!(tenants, ["acme", "zeta"]);
    assert!(series.iter().all(|one| one["rows"] == EVENTS_A_DAY / 2 && one["hours"] == 9));
    let section = |kind: &str| {
        json["sections"].as_array().unwrap().iter().find(|one| one["kind"] == kind).unwrap()
    };
    assert_eq!(section("text values")["values"], 3);
    assert_eq!(section("users")["values"], 20);
    assert_eq!(section("numbers")["values"], EVENTS_A_DAY);
    let is_of_status = |one: &&Value| one["kind"] == "bitmaps" && one["column"] == "status";
    let bitmaps = json["sections"].as_array().unwrap().iter().find(is_of_status).unwrap();
    assert_eq!(bitmaps["blocks"][0]["encoding"], "roaring, 1 values");
    let block = &section("numbers")["blocks"][0];
    assert_eq!(block["zone"], "0 to 124.75, 0 absent");
    assert_eq!(block["bytes"], section("numbers")["bytes"]);
    let text = store.inspect(&["segment", &uuid, "--series"]).out;
    assert!(text.contains("user codes") && text.contains("zeta"), "{text}");
    assert!(!text.contains("zone"), "blocks only on request: {text}");
    assert_eq!(store.inspect(&["segment", ""]).code, 2, "several begin like this");
    let none = store.inspect(&["segment", "ffff"]);
    assert!(none.code == 2 && none.err.contains("ffff"), "{}", none.err);
}

#[test]
fn rollups_are_shown_row_by_row() {
    let store = Store::new();
    let segments = store.inspect(&["segments", "--json"]).json();
    let uuid = segments["segments"][0]["uuid"].as_str().unwrap().to_owned();
    let json = store.inspect(&["segment", &uuid, "--rollups", "--json"]).json();
    let of_acme: Vec<&Value> = json["rollups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["tenant"] == "acme" && row["hour"].is_null() && !row["count"].is_null())
        .collect();
    // Every second of 500 events belongs to it, and models take turns.
    let count = |model: &str| {
        let is_model =
            |row: &&&Value| row["values"] == json!({"model": model}) && row["number"].is_null();
        of_acme.iter().find(is_model).unwrap()["count"].as_u64().unwrap()
    };
    assert_eq!(["model-0", "model-1", "model-2"].map(count), [84, 83, 83]);
    let ms = of_acme.iter().find(|row| row["number"] == "ms" && row["values"] == json!({}));
    assert_eq!(ms.unwrap()["count"], 250);
    assert_eq!(ms.unwrap()["sums"], json!({"sum": 15_562.5, "min": 0.0, "max": 124.5}));
    // With all tenants together.
    let all = json["rollups"].as_array().unwrap().iter().filter(|row| row["tenant"].is_null());
    let of_all: Vec<&Value> = all.filter(|row| row["number"] == "ms").collect();
    assert_eq!(of_all[0]["count"], 500);
    let hours: u64 = json["rollups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| {
            row["tenant"] == "acme"
                && row["number"].is_null()
                && !row["hour"].is_null()
                && !row["values"]["model"].is_null()
        })
        .map(|row| row["count"].as_u64().unwrap())
        .sum();
    assert_eq!(hours, 250, "hours add up to the day");
    let text = store.inspect(&["segment", &uuid, "--rollups"]).out;
    assert!(text.contains("model=model-1") && text.contains("all day"), "{text}");
}

#[test]
fn log_keys_and_ids_show_what_was_written() {
    let store = Store::new();
    let json = store.inspect(&["log", "--json"]).json();
    let records = json["records"].as_array().unwrap();
    assert_eq!(records.len(), 2, "those after the checkpoint");
    assert_eq!(records[0]["keys"][0], "user orgs/acme");
    assert_eq!((&records[1]["events"], &records[1]["kind"]), (&WAITING.into(), &"events".into()));
    let last = records[1]["lsn"].as_u64().unwrap();
    let from = store.inspect(&["log", "--from", &last.to_string(), "--json"]).json();
    assert_eq!(from["records"].as_array().unwrap().len(), 1);
    assert!(store.inspect(&["log"]).out.contains("user orgs/acme and 1 more"));

    let keys = store.inspect(&["keys", "orgs/", "--values", "--json"]).json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    assert_eq!(keys["keys"][0]["value"], "{\"name\":\"Acme\"}");
    assert_eq!(
        (&keys["keys"][1]["value"], &keys["keys"][1]["value_hex"]),
        (&Value::Null, &"00ff".into())
    );
    let text = store.inspect(&["keys"]).out;
    assert!(text.contains("orgs/acme") && !text.contains("Acme"), "values only on request: {text}");
    let segments = store.inspect(&["segments", "--json"]).json();
    let name = segments["segments"][0]["uuid"].as_str().unwrap().to_owned();
    assert!(text.contains(&format!("s {name}")), "{text}");

    let ids = store.inspect(&["ids", "--json"]).json();
    assert_eq!(ids["ids"], IN_SEGMENTS);
    assert_eq!(ids["id_runs"][0]["day_first"], "2024-10-03", "weeks since 1970 begin on Thursdays");
    assert!(store.inspect(&["ids"]).out.contains("2,200"));
}

#[test]
fn the_help_explains_the_words() {
    let said = inspect(Path::new("."), &["--help"]);
    assert_eq!(said.code, 0);
    for word in ["segment ", "block ", "id run ", "series ", "Examples:", "INLAY_DATA_DIR"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    let columns = inspect(Path::new("."), &["columns", "--help"]).out;
    assert!(columns.contains("encoding"), "{columns}");
}
