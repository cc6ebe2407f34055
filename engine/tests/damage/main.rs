//! Flipped bits anywhere in a data directory: the right answer or an error, never another answer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod prepared;
mod sectors;

use inlay_engine::*;
use prepared::{EVENTS, Prepared, Seen, fill, look, open, variable};

#[test]
fn a_flipped_bit_gives_the_right_answer_or_an_error() {
    let prepared =
        Prepared::new(variable("INLAY_FLIP_EVENTS").map_or(EVENTS, |events| events as u32));
    let step = variable("INLAY_FLIP_STEP").unwrap_or(23);
    let mut seen = Seen::default();
    for (path, bytes) in &prepared.files {
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
        let places: Vec<usize> = (0..used).step_by(step).collect();
        seen += prepared.damage_each(&places, |at| {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            (format!("{path} byte {at}"), vec![(path.clone(), damaged)])
        });
    }
    assert!(seen.errors > 300 && seen.same > 0 && seen.cut > 0, "{seen:?}");
}

#[test]
fn swapped_stale_and_missing_files_are_refused() {
    let disk = Prepared::new(EVENTS).disk;
    let segments: Vec<(String, Vec<u8>)> =
        disk.files().into_iter().filter(|(path, _)| path.ends_with(".seg")).collect();
    let [(first, one), (second, two), ..] = &segments[..] else {
        panic!("{} segments", segments.len())
    };
    for (path, content) in [(first, Some(two)), (second, Some(one)), (first, None)] {
        let copy = disk.after_kill();
        copy.set_file(path, content.cloned());
        let error = open(&copy).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(path.as_str()), "{error}");
    }
}

#[test]
fn both_superblocks_lost_is_refused_not_guessed() {
    let disk = Prepared::new(EVENTS).disk;
    disk.set_file("SUPER.a", None);
    disk.set_file("SUPER.b", None);
    let error = open(&disk).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("SUPER.a"), "{error}");
}

#[test]
fn a_second_process_is_refused() {
    let disk = SimVfs::new();
    let engine = open(&disk).unwrap();
    let error = open(&disk).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    drop(engine);
    assert!(open(&disk).is_ok());
}

#[test]
fn a_real_directory_behaves_as_the_simulated_one() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Engine::open_directory(directory.path(), Options::default());
    let engine = open().unwrap();
    assert!(open().map(|_| ()).unwrap_err().to_string().contains("another process"));
    fill(&engine, 0, 200);
    engine.flush().unwrap();
    fill(&engine, 200, 300);
    let seen = look(&engine).unwrap();
    engine.close().unwrap();
    assert!(
        engine
            .transact(|txn| {
                txn.put(b"k", b"v");
                Ok::<_, Error>(())
            })
            .is_err(),
        "closed"
    );
    drop(engine);
    let engine = open().unwrap();
    assert_eq!(look(&engine).unwrap(), seen);
    fill(&engine, 100, 300);
    assert_eq!(
        look(&engine).unwrap().split("batch").next(),
        seen.split("batch").next(),
        "all were known"
    );
}
