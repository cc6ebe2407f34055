//! Making the end of the log durable before it counts.
//!
//! What a killed process wrote may not be on the disk yet, and after a sync that failed the system
//! may show bytes that it will never write. A log that went on behind them would have a hole after
//! the next loss of power, so the last frame is written once more. Not in its place: it may have
//! been acknowledged, and a disk that fails in the middle of the write would take it.

use super::{
    file::LogFile,
    frame::{FileHeader, HEADER_LEN, build, frame_at},
    reader::{LastFrame, LogTail},
};
use crate::{
    base::rng::Rng,
    error::{Error, IoContext, Result},
    vfs::Vfs,
};

/// Puts the last frame of the log into a file of its own, and gives the checksum that it has there.
/// Where a start has done so before, and nothing came after it, nothing is to be done. On a full disk
/// the frame is written in its place instead: a store must start to be able to make room.
pub fn harden(vfs: &dyn Vfs, rng: &dyn Rng, tail: &LogTail) -> Result<u32> {
    let Some(last) = &tail.last else { return Ok(tail.chain) };
    if last.is_synced {
        return Ok(tail.chain);
    }
    match copy(vfs, rng, last) {
        // Nothing has changed yet, neither a name nor what follows from it.
        Err(error) if error.is_disk_full() => {
            write_again(vfs, last)?;
            Ok(tail.chain)
        }
        Err(error) => Err(error),
        Ok((file, chain)) => {
            file.adopt(vfs)?;
            Ok(chain)
        }
    }
}

/// The frame in a file that has no name in the log yet, and its checksum there.
fn copy(vfs: &dyn Vfs, rng: &dyn Rng, last: &LastFrame) -> Result<(LogFile, u32)> {
    let place = &last.place;
    let view = vfs.map(place).at(place)?;
    let old = FileHeader::read(&view, place)?;
    let frame = frame_at(&view, last.bytes.start, &old, last.lsn_first)
        .ok_or_else(|| Error::corrupt(place, "changed while it was read"))?;
    let len = last.bytes.end.saturating_sub(last.bytes.start);
    let header = FileHeader {
        db: old.db,
        salt: rng.next_u64(),
        lsn_first: frame.lsn_first,
        chain: last.chain_before,
        synced_end: (HEADER_LEN + len) as u32,
    };
    let offset = HEADER_LEN as u64;
    let (bytes, crc) = build(&header, offset, frame.lsn_first, frame.count, frame.body);
    Ok((LogFile::prepare(vfs, header, &bytes, 0)?, crc))
}

fn write_again(vfs: &dyn Vfs, last: &LastFrame) -> Result<()> {
    let place = &last.place;
    let view = vfs.map(place).at(place)?;
    let file = vfs.open(place).at(place)?;
    if let Some(bytes) = view.get(last.bytes.clone()) {
        file.write_at(last.bytes.start as u64, bytes).at(place)?;
    }
    file.sync().at(place)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        base::{clock::ManualClock, rng::SeededRng},
        vfs::sim::{FailedSync, Fault, FaultPlan, SimVfs},
        wal::{DIRECTORY, RecordKind, Writer, frame::put_record, read},
    };

    const DB: [u8; 16] = [7; 16];

    fn append(disk: &SimVfs, seed: u64, chain: u32, lsns: std::ops::Range<u64>) {
        let (clock, rng) = (Arc::new(ManualClock::new(0)), Arc::new(SeededRng::new(seed)));
        let mut writer = Writer::new(Arc::new(disk.clone()), clock, rng, DB, chain, 1 << 16);
        for lsn in lsns {
            let mut body = Vec::new();
            put_record(RecordKind::Writes, format!("record {lsn}").as_bytes(), &mut body);
            writer.append(lsn, 1, &body).unwrap();
        }
    }

    fn texts(disk: &SimVfs) -> Vec<String> {
        let text = |payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
        read(disk, DB, 0).unwrap().0.iter().map(|record| text(record.payload())).collect()
    }

    /// Ten records over two starts, then whatever a third start meets at one of its steps.
    fn start(plan: Option<FaultPlan>, leaves: FailedSync) -> (SimVfs, Result<u32>) {
        let disk = SimVfs::new();
        disk.create_dir(DIRECTORY).unwrap();
        disk.create_dir("tmp").unwrap();
        disk.sync_dir("").unwrap();
        append(&disk, 1, 0, 1..8);
        let chain = harden(&disk, &SeededRng::new(2), &read(&disk, DB, 0).unwrap().1).unwrap();
        append(&disk, 3, chain, 8..11);
        assert_eq!(texts(&disk).len(), 10);
        let disk = disk.after_kill();
        disk.set_failed_sync(leaves);
        disk.set_plan(plan);
        let tail = read(&disk, DB, 0).unwrap().1;
        let result = harden(&disk, &SeededRng::new(4), &tail);
        disk.set_plan(None);
        (disk, result)
    }

    #[test]
    fn the_last_frame_lies_in_a_file_of_its_own_and_the_log_goes_on_behind_it() {
        let (disk, chain) = start(None, FailedSync::New);
        let names: Vec<String> = disk.files().into_keys().collect();
        let name = |lsn: u64| format!("{DIRECTORY}/{lsn:020}.wal");
        assert_eq!(names, [name(1), name(7), name(8), name(10)]);
        let before = texts(&disk);
        assert_eq!(before[9], "record 10");
        append(&disk, 5, chain.unwrap(), 11..13);
        assert_eq!(texts(&disk)[..10], before);
        assert_eq!(texts(&disk).len(), 12);
    }

    #[test]
    fn the_older_copy_is_not_looked_at_and_a_file_from_elsewhere_is_refused() {
        let (disk, _) = start(None, FailedSync::New);
        let files = disk.files();
        let (old, new) =
            (format!("{DIRECTORY}/{:020}.wal", 8), format!("{DIRECTORY}/{:020}.wal", 10));
        let at = files[&old].windows(9).position(|bytes| bytes == b"record 10").unwrap();
        let mut damaged = files[&old].clone();
        damaged[at] ^= 1;
        disk.set_file(&old, Some(damaged));
        assert_eq!(texts(&disk).len(), 10);
        // The frame before it is looked at: the copy says which one it follows.
        let at = files[&old].windows(8).position(|bytes| bytes == b"record 9").unwrap();
        let mut damaged = files[&old].clone();
        damaged[at] ^= 1;
        disk.set_file(&old, Some(damaged));
        assert!(read(&disk, DB, 0).is_err());
        disk.set_file(&old, Some(files[&old].clone()));
        let mut header = FileHeader::read(&files[&new], &new).unwrap();
        header.chain ^= 1;
        let rest = &files[&new][HEADER_LEN..];
        disk.set_file(&new, Some([&header.write(), rest].concat()));
        assert!(read(&disk, DB, 0).is_err());
    }

    #[test]
    fn what_a_start_has_copied_is_not_copied_again_and_its_damage_is_no_torn_write() {
        let (disk, first) = start(None, FailedSync::New);
        let (files, steps) = (disk.files(), disk.steps());
        let tail = read(&disk, DB, 0).unwrap().1;
        assert_eq!(harden(&disk, &SeededRng::new(6), &tail).unwrap(), first.unwrap());
        assert_eq!(disk.steps(), steps, "nothing to be done");
        let copy = format!("{DIRECTORY}/{:020}.wal", 10);
        for at in HEADER_LEN..files[&copy].len() {
            let mut damaged = files[&copy].clone();
            damaged[at] ^= 4;
            disk.set_file(&copy, Some(damaged));
            match read(&disk, DB, 0) {
                Err(Error::Corrupt { .. }) => {}
                Err(other) => panic!("{other}"),
                // Padding is not covered.
                Ok((records, _)) => assert_eq!(records.len(), 10),
            }
        }
    }

    /// The name of the copy may be there and not be durable: what comes next must fit both.
    #[test]
    fn a_directory_that_cannot_be_synced_for_lack_of_room_refuses_the_start() {
        for (fault, ahead) in [(Fault::SyncFull, 3..9), (Fault::Full, 0..9)] {
            for ahead in ahead {
                let before = start(None, FailedSync::New).0.steps() - 6;
                let plan = FaultPlan { at: before + ahead, fault, sticky: false };
                let (disk, result) = start(Some(plan), FailedSync::New);
                if let Ok(chain) = result {
                    append(&disk, 9, chain, 11..13);
                    assert_eq!(texts(&disk).len(), 12, "{fault:?} {ahead}");
                }
                assert!(texts(&disk).len() >= 10);
            }
        }
    }

    #[test]
    fn no_fault_at_any_step_takes_a_record() {
        for leaves in [FailedSync::New, FailedSync::Old, FailedSync::Zero] {
            for fault in [Fault::Error, Fault::PowerLoss, Fault::Full] {
                for ahead in 0.. {
                    let steps = {
                        let (disk, _) = start(None, leaves);
                        disk.steps()
                    };
                    if ahead >= steps {
                        break;
                    }
                    let plan = FaultPlan { at: ahead, fault, sticky: false };
                    let (disk, result) = start(Some(plan), leaves);
                    assert!(fault != Fault::Full || result.is_ok(), "a full disk can start");
                    for disk in [disk.after_kill(), disk.after_power_loss(&SeededRng::new(ahead))] {
                        assert_eq!(texts(&disk).len(), 10, "{leaves:?} {fault:?} at {ahead}");
                    }
                }
            }
        }
    }
}
