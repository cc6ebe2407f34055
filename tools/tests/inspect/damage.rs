//! What it says of whole and of damaged directories: the place of damage, and whatever can still be
//! read.

use std::{fs, path::Path};

use inlay_engine::{Rng as _, SeededRng};

use serde_json::Value;

use crate::store::*;

#[test]
fn a_whole_directory_and_a_whole_backup_verify() {
    let store = Store::new();
    let backup = tempfile::tempdir().unwrap();
    let target = backup.path().join("b");
    store.open().backup(target.to_str().unwrap(), None, &mut |_| ()).unwrap();
    for directory in [store.0.path(), &target] {
        let said = inspect(directory, &["verify"]);
        assert_eq!(said.code, 0, "{}", said.out);
        assert!(said.out.contains("Nothing is wrong."));
        let json = inspect(directory, &["verify", "--json"]).json();
        assert_eq!(json["problems"], Value::Array(vec![]));
        assert_eq!(json["backup_files"].is_u64(), directory == target);
    }
    let victim = target.join("SUPER.a");
    flip(&victim, |len| len / 2);
    let said = inspect(&target, &["verify"]);
    assert!(said.code == 1 && said.out.contains("SUPER.a"), "{}", said.out);
}

/// Damage of one segment: named by every command that reads it, and the others are still shown.
#[test]
fn a_damaged_segment_is_named_and_the_rest_shown() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("a flipped byte in a block", |path| flip(path, |_| 70)),
        ("a flipped byte in the footer", |path| flip(path, |len| len - 60)),
        ("a cut file", |path| fs::write(path, &fs::read(path).unwrap()[..300]).unwrap()),
        ("a deleted file", |path| fs::remove_file(path).unwrap()),
    ];
    for (harm, harm_it) in harms {
        let store = Store::new();
        let victim = store.files("seg").pop().unwrap();
        let name = victim.file_stem().unwrap().to_str().unwrap();
        harm_it(&victim);
        let place = relative(&store, &victim);
        for command in [&["columns"][..], &["segment", name, "--blocks"], &["verify"]] {
            for json in [false, true] {
                let arguments = [command, if json { &["--json"] } else { &[] }].concat();
                let said = store.inspect(&arguments);
                assert_eq!(said.code, 1, "{harm}: {command:?}: {}", said.out);
                assert!(said.out.contains(place), "{harm}: {command:?}: {}", said.out);
            }
        }
        let segments = store.inspect(&["segments", "--json"]).json();
        assert_eq!(segments["segments"].as_array().unwrap().len(), 5, "{harm}");
        assert!(store.inspect(&["columns"]).out.contains("times"), "{harm}");
    }
}

#[test]
fn a_damaged_id_run_is_named() {
    // The filter lies before the list, which has 28 bytes for the one block, and the trailer.
    for (part, at) in
        [("block", (|_| 5) as fn(usize) -> usize), ("filter", |len| len - 64 - 28 - 100)]
    {
        let store = Store::new();
        // The run of the second flush, with 200 ids.
        let victim =
            store.files("ids").into_iter().min_by_key(|path| path.metadata().unwrap().len());
        let victim = victim.unwrap();
        flip(&victim, at);
        let said = store.inspect(&["verify", "--json"]);
        assert_eq!(said.code, 1, "{part}");
        assert_eq!(said.json()["problems"].as_array().unwrap().len(), 1, "{part}: {}", said.out);
        assert_eq!(said.json()["problems"][0]["place"], relative(&store, &victim), "{part}");
    }
}

#[test]
fn behind_a_damaged_log_the_checkpoint_is_shown() {
    let store = Store::new();
    let log = store.files("wal").pop().unwrap();
    // The first frame behind the header; the frames after it show that it was once good.
    flip(&log, |_| 64 + 30);
    for command in ["segments", "columns", "ids", "keys"] {
        let said = store.inspect(&[command]);
        assert_eq!(said.code, 1, "{command}");
        assert!(said.out.contains("shown is the checkpoint"), "{command}: {}", said.out);
        assert!(said.out.contains(relative(&store, &log)), "{command}: {}", said.out);
    }
    assert_eq!(store.inspect(&["segments", "--json"]).json()["rows"], IN_SEGMENTS);
    let said = store.inspect(&["verify", "--json"]);
    assert_eq!((said.code, said.json()["problems"].as_array().unwrap().len()), (1, 1));

    fs::write(log.with_file_name("garbage"), "x").unwrap();
    let said = store.inspect(&["verify"]);
    assert!(said.code == 1 && said.out.contains("wal/garbage"), "{}", said.out);
}

#[test]
fn damaged_superblocks_are_named() {
    let store = Store::new();
    fs::write(store.0.path().join("SUPER.a"), [7; 4096]).unwrap();
    assert_eq!(store.inspect(&["segments"]).code, 0, "one slot is enough to read everything");
    let said = store.inspect(&["verify"]);
    assert!(said.code == 1 && said.out.contains("SUPER.a: checksum mismatch"), "{}", said.out);
    fs::write(store.0.path().join("SUPER.b"), "short").unwrap();
    for command in all_commands("") {
        let said = store.inspect(&command);
        assert_eq!(said.code, 1, "{command:?}");
        assert!((said.out + &said.err).contains("SUPER.b"), "{command:?}");
    }
}

#[test]
fn a_place_without_a_database_has_no_answer() {
    let empty = tempfile::tempdir().unwrap();
    for directory in [empty.path().to_owned(), empty.path().join("nowhere")] {
        for command in all_commands("") {
            let said = inspect(&directory, &command);
            assert_eq!((said.code, &*said.out), (2, ""), "{command:?}");
            assert!(said.err.contains("holds no database"), "{}", said.err);
        }
    }
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0, "nothing was made");
}

/// Random bytes in each file in turn, and files cut anywhere: an answer or an error, never a panic.
#[test]
fn no_damage_ends_it_with_a_panic() {
    let store = Store::new();
    let rng = SeededRng::new(11);
    let segment = store.files("seg")[0].file_stem().unwrap().to_str().unwrap().to_owned();
    let commands = all_commands(&segment);
    let mut turn = 0;
    for (path, bytes) in store.contents() {
        if path.ends_with("LOCK") {
            continue;
        }
        for round in 0..6 {
            let mut damaged = bytes.clone();
            let start = rng.below(bytes.len() as u64) as usize;
            match round % 3 {
                0 => damaged.truncate(start),
                1 => damaged.fill_with(|| rng.next_u64() as u8),
                _ => damaged[start..]
                    .iter_mut()
                    .take(40)
                    .for_each(|byte| *byte ^= rng.next_u64() as u8),
            }
            fs::write(&path, damaged).unwrap();
            // Each damage meets a few of the commands; over all files each command meets many.
            for at in 0..3 {
                let command = &commands[(turn + at) % commands.len()];
                store.inspect(command);
            }
            turn += 3;
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(store.inspect(&["verify"]).code, 0, "all damage was undone");
}

fn flip(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn relative<'a>(store: &Store, path: &'a Path) -> &'a str {
    path.strip_prefix(store.0.path()).unwrap().to_str().unwrap()
}
