//! The two small files that say which database this is and where its newest checkpoints are.
//!
//! They alternate: a new state replaces the older slot, as a whole and by its name, and the other stays.
//! Layout: `doc/format.md`, "Superblock".

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::io;

use crate::{
    base::{
        coding::{Cursor, Put},
        hash::crc,
        rng::Rng,
    },
    error::{Error, IoContext, Result},
    segment::Database,
    vfs::{Vfs, read_all},
};

const SLOTS: [&str; 2] = ["SUPER.a", "SUPER.b"];
const MAGIC: [u8; 8] = *b"INLAYSUP";
/// Version of the data directory. A newer one is refused.
pub const FORMAT: u32 = 1;
const SLOT_LEN: usize = 4_096;
/// Checkpoints kept: the newest, and one to fall back on.
pub const CHECKPOINTS_KEPT: usize = 2;

/// A checkpoint that can be recovered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointRef {
    /// State of the keyspace as of this LSN.
    pub lsn: u64,
    /// Records above this LSN are needed with it.
    pub replay_after: u64,
}

/// Identity of the database, and its checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Random identity, drawn when the database is created.
    pub db: [u8; 16],
    /// Secret seed of the stored hashes.
    pub hash_seed: u64,
    /// Rises with each checkpoint.
    pub generation: u64,
    /// Newest first; at most two.
    pub checkpoints: Vec<CheckpointRef>,
}

impl Superblock {
    /// The database as segments refer to it.
    pub fn database(&self) -> Database {
        Database { id: self.db, hash_seed: self.hash_seed }
    }

    /// A new database, with an identity and a seed of its own, and no checkpoint.
    pub fn new(rng: &dyn Rng) -> Self {
        let mut db = [0; 16];
        rng.fill(&mut db);
        Self { db, hash_seed: rng.next_u64(), generation: 0, checkpoints: Vec::new() }
    }

    /// The bytes of a slot, 4,096 of them: for a log that keeps the superblock elsewhere.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SLOT_LEN);
        out.extend_from_slice(&MAGIC);
        out.put_u32(FORMAT);
        out.extend_from_slice(&self.db);
        out.put_u64(self.hash_seed);
        out.put_u64(self.generation);
        out.put_varint(self.checkpoints.len() as u64);
        for checkpoint in &self.checkpoints {
            out.put_u64(checkpoint.lsn);
            out.put_u64(checkpoint.replay_after);
        }
        out.resize(SLOT_LEN - 4, 0);
        out.put_u32(crc(&[&out]));
        out
    }

    /// What [`Superblock::encode`] made. `place` names the bytes in errors.
    ///
    /// Errors: `Invalid` for a newer format, `Corrupt` for all that is not a superblock.
    pub fn decode(bytes: &[u8], place: &str) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, place);
        let body = cursor.take(SLOT_LEN - 4)?;
        if cursor.u32()? != crc(&[body]) {
            return Err(cursor.error("checksum mismatch"));
        }
        let mut cursor = Cursor::new(body, place);
        if cursor.take(8)? != MAGIC {
            return Err(cursor.error("is not a superblock"));
        }
        let format = cursor.u32()?;
        if format != FORMAT {
            return Err(Error::invalid(
                "data directory",
                format!(
                    "has format {format}, and this build reads format {FORMAT}; use a newer build"
                ),
            ));
        }
        let mut db = [0; 16];
        db.copy_from_slice(cursor.take(16)?);
        let (hash_seed, generation) = (cursor.u64()?, cursor.u64()?);
        let count = cursor.count(16)?;
        let checkpoints = (0..count)
            .map(|_| Ok(CheckpointRef { lsn: cursor.u64()?, replay_after: cursor.u64()? }))
            .collect::<Result<Vec<_>>>()?;
        let is_possible =
            |kept: &CheckpointRef| kept.replay_after <= kept.lsn && kept.lsn < u64::MAX;
        if count > CHECKPOINTS_KEPT || !checkpoints.iter().all(is_possible) {
            return Err(cursor.error("holds impossible numbers"));
        }
        Ok(Self { db, hash_seed, generation, checkpoints })
    }

    /// Puts the next generation in the place of the older slot, durably. Never over it: it may be the only
    /// good one.
    pub fn store(&mut self, vfs: &dyn Vfs) -> Result<()> {
        let generation = self.generation.checked_add(1);
        let generation = generation
            .ok_or_else(|| Error::corrupt("the superblock", "has the last generation there is"))?;
        let next = Self { generation, ..self.clone() };
        let place = if generation.is_multiple_of(2) { SLOTS[0] } else { SLOTS[1] };
        next.put_slot(vfs, place)?;
        vfs.sync_dir("").at("the data directory")?;
        *self = next;
        Ok(())
    }

    /// Makes both slots, durably.
    pub fn create(&self, vfs: &dyn Vfs) -> Result<()> {
        for place in SLOTS {
            self.put_slot(vfs, place)?;
        }
        vfs.sync_dir("").at("the data directory")
    }

    /// Puts what a start has found into both slots, durably: one of them may be lost, damaged, unreadable for a
    /// moment, or be seen and not be on the disk. On a full disk they stay as they are, as they did for the
    /// start.
    pub fn settle(&self, vfs: &dyn Vfs) -> Result<()> {
        match self.create(vfs) {
            Err(error) if error.is_disk_full() => Ok(()),
            result => result,
        }
    }

    /// Both slots as bytes, with their names.
    pub fn slots(&self) -> [(&'static str, Vec<u8>); 2] {
        SLOTS.map(|name| (name, self.encode()))
    }

    fn put_slot(&self, vfs: &dyn Vfs, place: &str) -> Result<()> {
        let temporary = format!("tmp/{place}");
        let _ = vfs.remove(&temporary);
        let file = vfs.create(&temporary).at(&temporary)?;
        file.write_at(0, &self.encode()).at(&temporary)?;
        file.sync().at(&temporary)?;
        vfs.rename(&temporary, place).at(place)
    }

    /// The newest valid slot; `None` when there is no slot at all.
    ///
    /// Errors: `Invalid` for a newer format, `Corrupt` when no slot is valid.
    pub fn load(vfs: &dyn Vfs) -> Result<Option<Self>> {
        let mut found: Option<Self> = None;
        let mut damage = None;
        for place in SLOTS {
            // What a killed process wrote may not be on the disk yet; it must be before it counts.
            let read = vfs.open(place).and_then(|file| file.sync().and_then(|()| read_all(&*file)));
            let bytes = match read {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    damage = Some(Error::io(place, &error));
                    continue;
                }
            };
            match Self::decode(&bytes, place) {
                Ok(slot)
                    if found.as_ref().is_none_or(|found| found.generation < slot.generation) =>
                {
                    found = Some(slot);
                }
                Ok(_) => {}
                Err(error @ Error::Invalid { .. }) => return Err(error),
                Err(error) => damage = Some(error),
            }
        }
        match (found, damage) {
            (Some(slot), _) => Ok(Some(slot)),
            (None, Some(damage)) => Err(damage),
            (None, None) => Ok(None),
        }
    }

    /// What is wrong with either slot. One good slot is enough to start, so [`Superblock::load`] does
    /// not mention the other.
    pub fn check_slots(vfs: &dyn Vfs) -> Vec<Error> {
        SLOTS.into_iter().filter_map(|place| Self::check(vfs, place).err()).collect()
    }

    fn check(vfs: &dyn Vfs, place: &str) -> Result<Self> {
        Self::decode(&read_all(&*vfs.open(place).at(place)?).at(place)?, place)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{
        base::rng::SeededRng,
        vfs::sim::{Fault, FaultPlan, SimVfs},
    };

    fn created() -> (SimVfs, Superblock) {
        let vfs = SimVfs::new();
        let block = Superblock { db: [1; 16], hash_seed: 2, generation: 0, checkpoints: vec![] };
        block.create(&vfs).unwrap();
        (vfs, block)
    }

    #[test]
    fn a_damaged_slot_leaves_the_other() {
        let (vfs, mut block) = created();
        block.checkpoints = vec![CheckpointRef { lsn: 9, replay_after: 4 }];
        block.store(&vfs).unwrap();
        assert_eq!(Superblock::load(&vfs).unwrap(), Some(block.clone()));
        let newest = SLOTS[(block.generation % 2) as usize];
        vfs.set_file(newest, Some(vec![0; SLOT_LEN]));
        assert_eq!(Superblock::load(&vfs).unwrap().map(|found| found.generation), Some(0));
        vfs.set_file(SLOTS[0], Some(vec![1; 7]));
        vfs.set_file(SLOTS[1], Some(vec![1; 7]));
        assert!(matches!(Superblock::load(&vfs), Err(Error::Corrupt { .. })));
    }

    /// A disk on which a slot may be lost or damaged, and the generation that is on it.
    fn spoiled(slot: Option<&str>, content: Option<Vec<u8>>) -> (SimVfs, u64) {
        let (vfs, mut block) = created();
        block.checkpoints = vec![CheckpointRef { lsn: 9, replay_after: 4 }];
        block.store(&vfs).unwrap();
        if let Some(slot) = slot {
            vfs.set_file(slot, content);
        }
        let generation = Superblock::load(&vfs).unwrap().unwrap().generation;
        (vfs, generation)
    }

    #[test]
    fn a_lost_or_damaged_slot_is_written_again() {
        for slot in SLOTS {
            for content in [None, Some(vec![0; SLOT_LEN])] {
                let (vfs, _) = spoiled(Some(slot), content);
                let found = Superblock::load(&vfs).unwrap().unwrap();
                found.settle(&vfs).unwrap();
                assert_eq!(Superblock::check_slots(&vfs), []);
                assert_eq!(Superblock::load(&vfs).unwrap(), Some(found));
            }
        }
    }

    /// A start that settles, with a fault at any of its steps, then two more generations, and a loss of power at
    /// any step of it all: what was stored is never lost.
    #[test]
    fn no_fault_takes_what_was_stored() {
        let slots = [None, Some(SLOTS[0]), Some(SLOTS[1])];
        let contents = [None, Some(vec![0; SLOT_LEN])];
        for (slot, content) in slots.iter().flat_map(|slot| contents.iter().map(move |c| (slot, c)))
        {
            for fault in [Fault::Error, Fault::Full, Fault::SyncFull] {
                for (at, power_at) in (0..12).flat_map(|at| (0..30).map(move |power| (at, power))) {
                    let (vfs, generation) = spoiled(*slot, content.clone());
                    let stored = Cell::new(generation);
                    let plan = |steps, fault, sticky| {
                        vfs.set_plan(Some(FaultPlan { at: steps, fault, sticky }));
                    };
                    let mut block = Superblock::load(&vfs).unwrap().unwrap();
                    plan(vfs.steps() + at, fault, false);
                    let _ = block.settle(&vfs);
                    plan(vfs.steps() + power_at, Fault::PowerLoss, true);
                    for _ in 0..2 {
                        if block.store(&vfs).is_ok() {
                            stored.set(block.generation);
                        }
                    }
                    let rng = SeededRng::new(at * 100 + power_at);
                    let found = Superblock::load(&vfs.after_power_loss(&rng)).unwrap().unwrap();
                    let what = (slot, fault, at, power_at);
                    assert!(found.generation >= stored.get(), "{what:?}: {}", found.generation);
                }
            }
        }
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let (vfs, block) = created();
        let mut bytes = block.encode();
        bytes[8] = 9;
        bytes.truncate(SLOT_LEN - 4);
        let checksum = crc(&[&bytes]);
        bytes.put_u32(checksum);
        vfs.set_file(SLOTS[1], Some(bytes));
        let error = Superblock::load(&vfs).unwrap_err();
        assert!(matches!(&error, Error::Invalid { .. }) && error.to_string().contains("format 9"));
    }
}
