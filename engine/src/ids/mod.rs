//! Id runs: immutable sorted files of the hashes of event ids, some ten bytes for each with the filter.
//!
//! Each flush leaves one run beside its segment; runs of one week, a *generation*, are merged. A
//! probe asks the run's filter first (one byte an id, wrong for 0.4 % of unknown ids), then looks the
//! hash up in the sorted list, which decides. The filter is never the truth.
//!
//! ```text
//! ids/02913/019a6356-6e00-7b29-9172-b1a4f0f3ae86.ids     (of the golden files: 1,150 ids, 13,373 bytes)
//!      0  blocks: one of 1,150 hashes, 77 low bits each
//! 11,469  filter: 20 bytes of description, 1,792 of fingerprints
//! 13,281  list: first hash, end and checksum of each block
//! 13,309  trailer
//! ```
//!
//! An event that arrives with an id:
//!
//! ```text
//! hash of (namespace, tenant, id)    recent ids in memory   →  known: a duplicate
//!                                    run of today's flush   →  filter: certainly not
//!                                    run of last week       →  filter: look it up; block 3: not there
//!                                                           →  new
//! ```
//!
//! Layout: `doc/format.md`, "Id runs".

mod block;

mod layout;

mod reader;

mod writer;

mod merge;

pub use layout::{DIRECTORY, IdRunMeta, generation_at};
pub use merge::merge;
pub use reader::IdRun;
pub use writer::{NewRun, write};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        base::{
            hash::HashSet128,
            rng::{Rng, SeededRng},
        },
        segment::source_of,
        vfs::{Vfs, View, sim::SimVfs},
    };

    fn new_run(uuid: u128) -> NewRun {
        NewRun { uuid: uuid::Uuid::from_u128(uuid), db: [1; 16], generation: 3 }
    }

    fn run_of(count: usize) -> (SimVfs, IdRunMeta, Vec<u128>) {
        let rng = SeededRng::new(3);
        let mut hashes: Vec<u128> = (0..count)
            .map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()))
            .collect();
        hashes.sort_unstable();
        let vfs = SimVfs::new();
        let meta = write(&vfs, new_run(5), source_of(&hashes)).unwrap();
        (vfs, meta, hashes)
    }

    /// Where the blocks end, by the trailer.
    fn filter_offset(bytes: &[u8]) -> usize {
        let at = bytes.len() - layout::TRAILER_LEN + 8;
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
    }

    #[test]
    fn a_run_knows_its_ids_and_no_others() {
        for count in [0, 1, 2, 5_000] {
            let (vfs, meta, hashes) = run_of(count);
            assert_eq!(
                IdRunMeta::read(&{
                    let mut out = Vec::new();
                    meta.write(&mut out);
                    out
                })
                .unwrap(),
                meta
            );
            let run = IdRun::open(vfs.map(&meta.path()).unwrap(), meta, [1; 16]).unwrap();
            for &hash in &hashes {
                assert!(run.contains(hash).unwrap());
                assert!(!run.contains(hash ^ 1).unwrap());
                assert!(!run.contains(hash ^ (1 << 100)).unwrap());
            }
        }
    }

    #[test]
    fn merged_runs_hold_all_ids_but_those_taken_out() {
        let (vfs, meta, hashes) = run_of(9_000);
        let more: Vec<u128> = hashes.iter().step_by(3).map(|hash| hash ^ 1).collect();
        let mut more = more;
        more.sort_unstable();
        let other = write(&vfs, new_run(6), source_of(&more)).unwrap();
        let open = |meta: IdRunMeta| {
            Arc::new(IdRun::open(vfs.map(&meta.path()).unwrap(), meta, [1; 16]).unwrap())
        };
        let without: HashSet128 = hashes.iter().step_by(7).copied().collect();
        let inputs = [open(meta), open(other)];
        let merged = merge(&vfs, new_run(7), &inputs, &without, &|| Ok(())).unwrap();
        let merged = open(merged);
        merged.verify().unwrap();
        for hash in hashes.iter().chain(&more) {
            assert_eq!(merged.contains(*hash).unwrap(), !without.contains(hash));
        }
        assert_eq!(merged.meta().count as usize, hashes.len() + more.len() - without.len());
    }

    /// The filter is never the truth: a damaged one is built again from the list.
    #[test]
    fn a_damaged_filter_is_built_again() {
        let (vfs, meta, hashes) = run_of(5_000);
        let mut bytes = vfs.files()[&meta.path()].clone();
        let filter = filter_offset(&bytes);
        bytes[filter + 100..filter + 600].fill(0);
        let run = IdRun::open(View::new(bytes), meta, [1; 16]).unwrap();
        assert!(hashes.iter().all(|&hash| run.contains(hash).unwrap()));
        run.verify().unwrap();
    }

    #[test]
    fn every_flipped_byte_is_noticed_or_harmless() {
        let (vfs, meta, hashes) = run_of(300);
        let bytes = vfs.files()[&meta.path()].clone();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let run = IdRun::open(View::new(damaged), meta.clone(), [1; 16]);
            let answer = run.and_then(|run| run.contains(hashes[7]));
            // Bytes of the filter are replaced, all others refused.
            assert!(answer.as_ref().is_ok_and(|known| *known) || answer.is_err(), "byte {at}");
            assert!(answer.is_err() || at >= filter_offset(&bytes), "byte {at}");
        }
    }
}
