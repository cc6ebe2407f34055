//! Where the fuzzer starts from, and the short run of every target that is part of the tests.
//!
//! `testdata/fuzz/<target>` has pieces of the golden files, made by [`write_the_seeds`], and every
//! input that once found something (`found-…`). They are run as they are, and a few thousand times
//! changed at random: flipped, cut, doubled, spliced.
//!
//! A seed is named after its target and its sort; counts that the target needs stand in front of the piece:
//!
//! ```text
//! testdata/fuzz/bitmaps/roaring--1-values-0    01 01 12 3a 30 …        a block of bitmaps, nothing in front
//! testdata/fuzz/ints/packed-0                  rows less one, u16      then a block of integers
//! testdata/fuzz/numbers/decimal-2--listed-0    rows less one, u16; exponent, u8; then a block of numbers
//! testdata/fuzz/runs/3-runs-0                  length of the runs, u16; runs and hours without compression
//! testdata/fuzz/log/pair-0                     length of the first file, u16; LSN, u64; two files of the log
//! testdata/fuzz/zones/codes-0                  0 for zones of codes, 1 for those of numbers; then zones
//! ```
//!
//! A panic here does not say which input it was; the fuzzer over the same directory does.

use std::{collections::BTreeMap, path::PathBuf};

use super::targets;
use crate::{
    base::{
        coding::Put,
        rng::{Rng, SeededRng},
    },
    encode::BLOCK_ROWS,
    index::zones::{CodeZone, NumberZone},
    inspect::Inspection,
    segment::RunDirectory,
    sketch::{digest::Digest, hll::Distinct},
    vfs::{Vfs, os::OsVfs},
};

// What each `found-…` found: a block at an offset near 2^64, whose end overflowed; a count of users that
// were not there, for whom a merge made room; a filter whose description pointed outside of it; a log file
// before record 1, or with the last record that has a number; hours that began behind the rows of their
// run, and runs of more rows than a number holds; a superblock that no further generation can follow; a path
// in a backup's list that lost its last character.

/// Changed inputs a target: nine thousand of all eighteen.
const ROUNDS: usize = 500;
/// Seeds of one target and sort, at most: the fuzzer makes the others.
const SEEDS_EACH: usize = 2;
/// Larger pieces make a fuzzer slow.
const SEED_BYTES_MAX: usize = 13 * 1_024;

/// Relative to the crate, where `cargo test` runs.
fn testdata() -> PathBuf {
    PathBuf::from("testdata")
}

/// The inputs of a target, sorted by name, so that a run is the same on every machine.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = OsVfs::existing(testdata().join("fuzz").join(target));
    let names = directory.list("").expect("every target has seeds");
    names.iter().map(|name| directory.map(name).unwrap().to_vec()).collect()
}

#[test]
fn no_seed_and_no_variation_of_one_panics() {
    for (name, run) in targets() {
        let corpus = corpus(name);
        assert!(!corpus.is_empty(), "{name}");
        for input in &corpus {
            run(input);
        }
        let rng = SeededRng::new(name.len() as u64);
        for _ in 0..ROUNDS {
            run(&variation(&corpus, &rng));
        }
    }
}

/// A number below `bound`, which is not 0.
fn below(rng: &SeededRng, bound: usize) -> usize {
    rng.below(bound as u64) as usize
}

/// An input with one to three changes, each of one kind:
///
/// ```text
/// 0 cut off   1 a piece left out   2 a piece doubled   3 a piece of another seed put over it
/// 4 an extreme number of 1, 2, 4 or 8 bytes put over it   5, 6 one bit flipped
/// ```
fn variation(corpus: &[Vec<u8>], rng: &SeededRng) -> Vec<u8> {
    let mut bytes = corpus[below(rng, corpus.len())].clone();
    for _ in 0..=rng.below(3) {
        let at = below(rng, bytes.len() + 1);
        let end = at + below(rng, bytes.len() - at + 1);
        match rng.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let other = &corpus[below(rng, corpus.len())];
                let from = below(rng, other.len() + 1);
                bytes.splice(at..end, other[from..].iter().take(end - at).copied());
            }
            4 => {
                let extreme = [0, 1, u64::MAX, u64::MAX >> 1, 1 << 32, 1 << 16][below(rng, 6)];
                let width = [1, 2, 4, 8][below(rng, 4)];
                let bytes = bytes[at..].iter_mut().zip(extreme.to_le_bytes()).take(width);
                bytes.for_each(|(byte, new)| *byte = new);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
    }
    bytes
}

/// Pieces of the golden files, by target and name: `("ints", "packed-0")`.
struct Seeds(BTreeMap<(&'static str, String), Vec<u8>>);

impl Seeds {
    /// Keeps a piece, unless the target has enough of this sort or the piece is large. The sort becomes a part of a file's name:
    /// `decimal 2, listed` is `decimal-2--listed`.
    fn add(&mut self, target: &'static str, sort: &str, bytes: Vec<u8>) {
        let sort: String =
            sort.chars().map(|char| if char.is_alphanumeric() { char } else { '-' }).collect();
        let known = self.0.iter().filter(|((known, name), _)| {
            *known == target && name.rsplit_once('-').is_some_and(|(known, _)| known == sort)
        });
        let count = known.count();
        if count < SEEDS_EACH && bytes.len() <= SEED_BYTES_MAX {
            self.0.insert((target, format!("{sort}-{count}")), bytes);
        }
    }

    /// Blocks of all sections of all segments, by encoding; footers of small segments, and whole small files.
    fn sections(&mut self, inspection: &Inspection, vfs: &OsVfs) {
        for info in inspection.segments().unwrap() {
            let file = vfs.map(&info.path).unwrap();
            self.add("segment", info.level, file.to_vec());
            let trailer = file.len() - 32;
            let footer = u64::from_le_bytes(file[trailer..trailer + 8].try_into().unwrap());
            let (blocks, footer) = file[..trailer].split_at(footer as usize);
            if blocks.len() < 3_000 {
                let len = (blocks.len() as u16).to_le_bytes();
                self.add("footer", info.level, [&len, blocks, footer].concat());
            }
            let rows = (info.rows as u16 - 1).to_le_bytes();
            for section in inspection.sections(info.uuid).unwrap() {
                for (index, block) in section.blocks.iter().enumerate() {
                    let bytes = &file[block.offset as usize..][..block.bytes as usize];
                    let counted = |count: &[u8]| [count, bytes].concat();
                    // Blocks of several vectors are a sort of their own.
                    let long = if info.rows > 1_024 { " long" } else { "" };
                    let sort = &format!("{}{long}", block.encoding);
                    match &*section.kind {
                        // The other part of the directory is its hours.
                        "runs" if index == 0 => {
                            let hours = &section.blocks[1];
                            let hours = &file[hours.offset as usize..][..hours.bytes as usize];
                            let directory = RunDirectory::read([bytes, hours], "").unwrap();
                            let (mut heads, mut hours) = (Vec::new(), Vec::new());
                            directory.write_heads(&mut heads);
                            directory.write_hours(&mut hours);
                            let len = (heads.len() as u16).to_le_bytes();
                            let sort = format!("{} runs", section.values);
                            self.add("runs", &sort, [&len, &*heads, &*hours].concat())
                        }
                        "times" | "user codes" | "text codes" => {
                            self.add("ints", sort, counted(&rows))
                        }
                        "event ids" => self.add("event_ids", sort, counted(&rows)),
                        "users" | "text values" => {
                            let count = (section.values as u16).wrapping_sub(1).to_le_bytes();
                            self.add("texts", sort, counted(&count));
                        }
                        "numbers" => {
                            let exponent = match sort.strip_prefix("decimal ") {
                                Some(rest) => rest.as_bytes()[0] - b'0',
                                None => 255,
                            };
                            self.add("numbers", sort, counted(&[rows[0], rows[1], exponent]));
                        }
                        "bitmaps" => self.add("bitmaps", sort, bytes.to_vec()),
                        _ => {}
                    }
                }
            }
        }
    }

    /// Zones with a presence set and without, and of numbers with some rows and with none.
    fn zones(&mut self) {
        let mut codes = vec![0];
        CodeZone::of(&[0, 3, 3, 200], 250).write(&mut codes);
        CodeZone::of(&[1, 70_000], 70_000).write(&mut codes);
        self.add("zones", "codes", codes);
        let mut numbers = vec![1];
        NumberZone::of(&[1.5, f64::NAN]).write(&mut numbers);
        NumberZone::of(&[f64::NAN]).write(&mut numbers);
        self.add("zones", "numbers", numbers);
    }

    /// Sketches and digests of few, listed and dense states, two each where they are small enough.
    fn sketches(&mut self) {
        let rng = SeededRng::new(7);
        for (sort, count) in [("few", 5), ("listed", 900), ("dense", 3_000)] {
            let (mut users, mut digests) = (vec![0], vec![1]);
            for _ in 0..2 {
                let (mut users_state, mut digest) = (Distinct::default(), Digest::default());
                for n in 0..count {
                    users_state.insert(u128::from(rng.next_u64()));
                    digest.insert(n as f64 / 7.0);
                }
                users_state.write(&mut users);
                digest.settled().write(&mut digests);
                if sort == "dense" {
                    // Two would be longer than a seed may be.
                    break;
                }
            }
            self.add("sketches", &format!("users {sort}"), users);
            self.add("sketches", &format!("digests {sort}"), digests);
        }
    }

    /// A list of few bytes that would decompress to gigabytes: a reader has to refuse it before it reserves memory.
    fn unfolding(&mut self) {
        let mut plain = vec![0];
        plain.put_bytes(&[b'a'; 60_000]);
        for _ in 1..BLOCK_ROWS {
            plain.put_varint(60_000);
            plain.put_bytes(b"");
        }
        let len = (plain.len() as u32).to_le_bytes();
        let list = zstd::bulk::compress(&plain, 3).unwrap();
        self.add("texts", "unfolding", [&[255, 255], &len[..], &list].concat());
    }

    /// Each log file alone and with a header of the file that would follow; the payload of each record.
    fn log(&mut self, inspection: &Inspection, vfs: &OsVfs) {
        for name in vfs.list("wal").unwrap() {
            let file = vfs.map(&format!("wal/{name}")).unwrap();
            // Without the preallocated zeros, of which a log file mostly consists.
            let used = file.iter().rposition(|&byte| byte != 0).unwrap() + 1;
            let file = &file[..used.next_multiple_of(8)];
            let after = (name[..20].parse::<u64>().unwrap() - 1).to_le_bytes();
            let alone = [&(file.len() as u16).to_le_bytes(), &after[..], file].concat();
            self.add("log", "alone", alone);
            // A second file that continues: a header for the record after the last one.
            // Only the LSN is changed: the target puts the chain and the checksum right.
            let mut next = file[..64].to_vec();
            next[36..44].copy_from_slice(&(inspection.lsn() + 1).to_le_bytes());
            let pair = [&(file.len() as u16).to_le_bytes(), &after[..], file, &next].concat();
            self.add("log", "pair", pair);
        }
        for record in inspection.log(0) {
            let file = vfs.map(&record.file).unwrap();
            let payload = file[record.offset as usize..][..record.bytes as usize].to_vec();
            match record.kind {
                "events" => self.add("events", "events", payload),
                kind => self.add("writes", kind, payload),
            }
        }
    }

    /// Whole files of the other kinds, and records of the keyspace's keys of segments, id runs and erasures.
    fn files(&mut self, inspection: &Inspection, vfs: &OsVfs) {
        for name in vfs.list("ckpt").unwrap() {
            let file = vfs.map(&format!("ckpt/{name}")).unwrap().to_vec();
            self.add("checkpoint", "checkpoint", file);
        }
        for run in inspection.id_runs().unwrap() {
            self.add("id_run", "run", vfs.map(&run.path).unwrap().to_vec());
        }
        let slot = vfs.map("SUPER.a").unwrap();
        self.add("superblock", "slot", slot[..100].to_vec());
        for key in inspection.keys("").filter(|key| key.space == "engine") {
            if matches!(key.key.as_bytes()[0], b's' | b'i' | b'e') {
                self.add("records", &key.key[..1], key.value);
            }
        }
    }
}

#[test]
#[ignore = "makes the seeds from the golden files"]
fn write_the_seeds() {
    let vfs = OsVfs::existing(testdata().join("golden/v1/data"));
    let inspection = Inspection::open(vfs.clone()).unwrap();
    let mut seeds = Seeds(BTreeMap::new());
    seeds.sections(&inspection, &vfs);
    seeds.zones();
    seeds.sketches();
    seeds.unfolding();
    seeds.log(&inspection, &vfs);
    seeds.files(&inspection, &vfs);
    let backup = OsVfs::existing(testdata().join("golden/v1/backup"));
    seeds.add("backup_list", "list", backup.map("BACKUP").unwrap().to_vec());
    for ((target, name), bytes) in seeds.0 {
        let directory = OsVfs::new(testdata().join("fuzz").join(target)).unwrap();
        let _ = directory.remove(&name);
        directory.create(&name).unwrap().write_at(0, &bytes).unwrap();
    }
}
