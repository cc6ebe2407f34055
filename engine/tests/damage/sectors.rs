//! Sectors that were not written, written elsewhere, or written twice.

use std::collections::BTreeMap;

use super::prepared::{Prepared, Seen, variable};

const SECTORS: [usize; 2] = [512, 4_096];

/// A file with another sector at `at`, as far as both reach.
fn with(content: &[u8], at: usize, sector: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    let len = sector.len().min(content.len() - at);
    content[at..at + len].copy_from_slice(&sector[..len]);
    content
}

fn sector(content: &[u8], at: usize, len: usize) -> &[u8] {
    &content[at.min(content.len())..(at + len).min(content.len())]
}

/// A file of the same kind: the directory, but for logs and superblocks, which are few.
fn is_alike(one: &str, other: &str) -> bool {
    let kind = |path: &str| path.split(['/', '.']).next().map(str::to_owned);
    kind(one) == kind(other)
}

/// Each sector of each file, and what becomes of it by `spoil(files, path, at, len)`.
fn each_sector(
    prepared: &Prepared,
    spoil: impl Fn(&BTreeMap<String, Vec<u8>>, &str, usize, usize) -> Vec<(String, Vec<u8>)> + Sync,
) -> Seen {
    let step = variable("INLAY_SECTOR_STEP").unwrap_or(1);
    let mut seen = Seen::default();
    for len in SECTORS {
        for (path, content) in &prepared.files {
            let used = content.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
            let places: Vec<usize> = (0..used).step_by(len).step_by(step).collect();
            seen += prepared.damage_each(&places, |at| {
                (format!("{path}, {len} bytes at {at}"), spoil(&prepared.files, path, at, len))
            });
        }
    }
    seen
}

#[test]
fn a_sector_of_zeros_gives_the_right_answer_or_an_error() {
    let seen = each_sector(&Prepared::new(2_400), |files, path, at, len| {
        vec![(path.to_owned(), with(&files[path], at, &vec![0; len]))]
    });
    assert!(seen.errors > 50 && seen.cut > 0, "{seen:?}");
}

#[test]
fn a_sector_of_another_place_gives_the_right_answer_or_an_error() {
    let seen = each_sector(&Prepared::new(2_400), |files, path, at, len| {
        let alike: Vec<&String> = files.keys().filter(|other| is_alike(path, other)).collect();
        let other = alike[(at / len) % alike.len()];
        let there = (at * 7 / len + 1) * len % files[other].len().next_multiple_of(len);
        vec![(path.to_owned(), with(&files[path], at, sector(&files[other], there, len)))]
    });
    assert!(seen.errors > 50, "{seen:?}");
}

#[test]
fn swapped_sectors_give_the_right_answer_or_an_error() {
    let seen = each_sector(&Prepared::new(2_400), |files, path, at, len| {
        let alike: Vec<&String> = files.keys().filter(|other| is_alike(path, other)).collect();
        let other = alike[(at / len + 1) % alike.len()];
        let there = (at * 5 / len + 2) * len % files[other].len().next_multiple_of(len);
        let new = with(&files[path], at, sector(&files[other], there, len));
        let from = if other == path { &new } else { &files[other] };
        let swapped = with(from, there.min(from.len()), sector(&files[path], at, len));
        if other == path {
            vec![(path.to_owned(), swapped)]
        } else {
            vec![(path.to_owned(), new), (other.clone(), swapped)]
        }
    });
    assert!(seen.errors > 50, "{seen:?}");
}

/// A write that never came: the place has what an earlier file of the kind had there.
#[test]
fn a_stale_sector_gives_the_right_answer_or_an_error() {
    let prepared = Prepared::new(2_400);
    let past = prepared.past.clone();
    let seen = each_sector(&prepared, |files, path, at, len| {
        // The superblock is the one file that is written over; of others there were earlier ones.
        let older = past.get(path).filter(|_| path.starts_with("SUPER")).or_else(|| {
            past.iter().find(|(other, _)| is_alike(path, other)).map(|(_, content)| content)
        });
        let stale = older.map_or(&[][..], |older| sector(older, at, len));
        vec![(path.to_owned(), with(&files[path], at, stale))]
    });
    assert!(seen.errors > 20, "{seen:?}");
}
