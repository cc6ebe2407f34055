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
/// On a full disk it is written in its place instead: a store must start to be able to make room.
pub fn harden(vfs: &dyn Vfs, rng: &dyn Rng, tail: &LogTail) -> Result<u32> {
    let Some(last) = &tail.last else { return Ok(tail.chain) };
    match copy(vfs, rng, last) {
        Err(error) if error.is_disk_full() => {
            write_again(vfs, last)?;
            Ok(tail.chain)
        }
        result => result,
    }
}

fn copy(vfs: &dyn Vfs, rng: &dyn Rng, last: &LastFrame) -> Result<u32> {
    let place = &last.place;
    let view = vfs.map(place).at(place)?;
    let old = FileHeader::read(&view, place)?;
    let frame = frame_at(&view, last.bytes.start, &old, last.lsn_first)
        .ok_or_else(|| Error::corrupt(place, "changed while it was read"))?;
    let salt = rng.next_u64();
    let header =
        FileHeader { salt, lsn_first: frame.lsn_first, chain: last.chain_before, db: old.db };
    let offset = HEADER_LEN as u64;
    let (bytes, crc) = build(&header, offset, frame.lsn_first, frame.count, frame.body);
    LogFile::prepare(vfs, header, &bytes, 0)?.adopt(vfs)?;
    Ok(crc)
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
    fn a_frame_that_is_alone_in_its_file_is_replaced_in_one_step() {
        let (disk, first) = start(None, FailedSync::New);
        let count = disk.files().len();
        let tail = read(&disk, DB, 0).unwrap().1;
        let again = harden(&disk, &SeededRng::new(6), &tail).unwrap();
        assert_ne!(first.unwrap(), again, "it has a salt of its own");
        assert_eq!(disk.files().len(), count);
        assert_eq!(texts(&disk).len(), 10);
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
