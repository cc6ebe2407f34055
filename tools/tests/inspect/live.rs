//! What it does to a directory that somebody uses: nothing.

use std::{
    io::Read as _,
    process::{Command, Stdio},
    thread,
};

use crate::store::*;

#[test]
fn looking_changes_nothing_and_needs_no_lock() {
    let store = Store::new();
    let engine = store.open();
    let before = store.contents();
    for command in all_commands("") {
        store.inspect(&command);
    }
    assert!(store.contents() == before, "a file was changed");
    ingest(&engine, 1, 0, 30_000, 10);
    assert_eq!(store.inspect(&["--json"]).json()["log"]["events_waiting"], WAITING + 10);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let store = Store::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_inlay-inspect"))
        .args(["--data-dir", store.0.path().to_str().unwrap(), "keys"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*err), (Some(0), ""));
}

/// Segments, id runs and log files go away under its eyes. Gone is not damaged.
#[test]
fn a_store_at_work_is_never_called_damaged() {
    let store = Store::new();
    let engine = store.open();
    thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let commands = (0..5).flat_map(|_| all_commands(""));
            for command in commands.filter(|command| !command.contains(&"segment")) {
                let said = store.inspect(&command);
                assert_eq!(said.code, 0, "{command:?}: {}{}", said.out, said.err);
            }
        });
        let mut first = 100_000;
        while !looker.is_finished() {
            ingest(&engine, 1, (first % 3) as i64, first, 40);
            engine.flush().unwrap();
            engine.compact().unwrap();
            first += 40;
        }
    });
}
