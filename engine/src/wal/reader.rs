//! Reading the log back after a start.
//!
//! A frame that does not verify ends the log only if it can be a torn write: nothing valid follows
//! in its file, and no later file continues after it. Everything else is damage, which is reported
//! with file and offset and never skipped. A file ends where the next one begins: what it holds from
//! there on was written once more.

use std::ops::Range;

use super::{
    DIRECTORY,
    frame::{
        ALIGN, FRAME_HEADER_LEN, FileHeader, Frame, HEADER_LEN, RecordKind, frame_at, records,
    },
    writer::LogEnd,
};
use crate::{
    error::{Error, IoContext, Result},
    vfs::{Vfs, View},
};

/// One record of the log.
pub struct Record {
    /// Its log sequence number.
    pub lsn: u64,
    /// Kind of the record.
    pub kind: RecordKind,
    /// First LSN of its file.
    pub file_lsn_first: u64,
    file: View,
    start: usize,
    len: usize,
}

impl Record {
    /// Offset of the payload in the file.
    pub fn offset(&self) -> u64 {
        self.start as u64
    }

    /// The bytes of the record, without its kind and length.
    pub fn payload(&self) -> &[u8] {
        &self.file[self.start..self.start + self.len]
    }
}

/// Where the log ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogTail {
    /// LSN of the last record, or the one above which records were asked for when there is none.
    pub lsn_last: u64,
    /// Checksum of the last frame.
    pub chain: u32,
    /// Bytes of a torn frame that were ignored.
    pub torn_bytes: u64,
    /// The last frame, if the last file has one.
    pub last: Option<LastFrame>,
}

/// The last whole frame of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFrame {
    /// Path of the log file.
    pub place: String,
    /// LSN of its first record.
    pub lsn_first: u64,
    /// Range of the frame in the file.
    pub bytes: Range<usize>,
    /// Checksum of the frame before it.
    pub chain_before: u32,
    /// Whether it was synced before its file got its name.
    pub is_synced: bool,
}

/// The log files that can hold records above `after`: first LSN and path, in order.
fn list(vfs: &dyn Vfs, after: u64) -> Result<Vec<(u64, String)>> {
    let mut files = Vec::new();
    for name in vfs.list(DIRECTORY).at(DIRECTORY)? {
        let first = name.strip_suffix(".wal").and_then(|stem| stem.parse::<u64>().ok());
        // The first record is 1: before 0 there would be the record that no number is left for. No two
        // names mean the same number.
        let first = first.filter(|&first| first > 0 && name == format!("{first:020}.wal"));
        let place = format!("{DIRECTORY}/{name}");
        files.push((
            first.ok_or_else(|| Error::corrupt(&place, "is not the name of a log file"))?,
            place,
        ));
    }
    files.sort();
    let skipped = files.partition_point(|(first, _)| *first - 1 <= after).saturating_sub(1);
    Ok(files.split_off(skipped.min(files.len())))
}

/// The log files that hold the records above `after` up to `last`, and how much of each counts. `end` is
/// where the log ended then, if this process had written any of it. What a writer adds meanwhile, to
/// its file or in new ones, does not count.
pub fn files_after(
    vfs: &dyn Vfs,
    after: u64,
    last: u64,
    end: Option<LogEnd>,
) -> Result<Vec<(String, u64)>> {
    list(vfs, after)?
        .into_iter()
        .filter(|(first, _)| *first <= last)
        .map(|(first, place)| {
            let len = match end.filter(|end| end.lsn_first == first) {
                Some(end) => end.offset,
                None => vfs.open(&place).and_then(|file| file.len()).at(&place)?,
            };
            Ok((place, len))
        })
        .collect()
}

/// Reads all records with an LSN above `after`. Log files that end before are not looked at.
///
/// Errors: `Corrupt` naming file and offset when a record above `after` is missing or damaged.
pub fn read(vfs: &dyn Vfs, db: [u8; 16], after: u64) -> Result<(Vec<Record>, LogTail)> {
    let mut files = list(vfs, after)?.into_iter().peekable();

    let mut tail = LogTail { lsn_last: after, ..LogTail::default() };
    let mut out = Vec::new();
    let mut expected = files.peek().map_or(after.saturating_add(1), |(first, _)| *first);
    if expected - 1 > after {
        let place = files.peek().map_or(DIRECTORY, |(_, place)| place);
        return Err(Error::corrupt(
            place,
            format!("records {} to {} are missing", after + 1, expected - 1),
        ));
    }
    let mut chain = None;
    while let Some((first, place)) = files.next() {
        let view = vfs.map(&place).at(&place)?;
        let header = FileHeader::read(&view, &place)?;
        if header.db != db || header.lsn_first != first {
            return Err(Error::corrupt(&place, "belongs to another place or database"));
        }
        if first != expected || chain.is_some_and(|chain| chain != header.chain) {
            return Err(Error::corrupt(
                &place,
                format!("does not continue the log at record {expected}"),
            ));
        }
        let next = files.peek().map(|(next, _)| *next);
        let file = LogFileView { view: &view, header: &header, place: &place };
        let Frames { end: offset, last, chain: chain_here } =
            file.read(next, &mut expected, |record| {
                if record.lsn > after {
                    out.push(record);
                }
            })?;
        chain = Some(chain_here);
        tail.chain = chain_here;
        if next.is_some_and(|next| next != expected) {
            return Err(Error::corrupt(
                &place,
                format!(
                    "offset {offset}: record {expected} is damaged, and the log goes on after it"
                ),
            ));
        }
        if next.is_some() {
            file.refuse_a_branch(offset, expected)?;
        } else {
            if offset < header.synced_end as usize {
                return Err(Error::corrupt(
                    &place,
                    format!("offset {offset}: record {expected} is damaged, and was whole once"),
                ));
            }
            refuse_frames_behind(&view, offset, &header, &place, expected)?;
            tail.torn_bytes = written_len(view.get(offset..).unwrap_or_default()) as u64;
            tail.last = last;
        }
    }
    tail.lsn_last = tail.lsn_last.max(expected - 1);
    Ok((out, tail))
}

/// The records of a group that is in no file: `body` as it was appended, for a log that has groups elsewhere. `place` names the group in errors.
///
/// Errors: `Invalid` for records of an unknown kind.
pub fn records_of_group(
    body: &View,
    lsn_first: u64,
    count: u32,
    place: &str,
) -> Result<Vec<Record>> {
    let frame = Frame { lsn_first, count, body, crc: 0, end: body.len() };
    let record = |(lsn, kind, payload): (u64, RecordKind, &[u8])| {
        let start = payload.as_ptr() as usize - body.as_ptr() as usize;
        let (file, len) = (body.clone(), payload.len());
        Record { lsn, kind, file_lsn_first: lsn_first, file, start, len }
    };
    Ok(records(&frame, place)?.into_iter().map(record).collect())
}

/// A file of the log, to be read.
struct LogFileView<'a> {
    view: &'a View,
    header: &'a FileHeader,
    place: &'a str,
}

/// Result of reading the frames of a file.
struct Frames {
    /// Where the last good one ends.
    end: usize,
    /// The last good one.
    last: Option<LastFrame>,
    /// Its checksum; the file's own chain without one.
    chain: u32,
}

/// Frames of a file that may lie behind the beginning of the next: the one that was copied there, and
/// one that was cut and came back.
const FRAMES_OVERLAPPED_MAX: usize = 2;

impl LogFileView<'_> {
    /// A file that goes on where the next one begins is of another history, as when two copies of a
    /// directory were put together.
    fn refuse_a_branch(&self, mut offset: usize, mut expected: u64) -> Result<()> {
        for number in 0.. {
            let Some(frame) = frame_at(self.view, offset, self.header, expected) else { break };
            if number == FRAMES_OVERLAPPED_MAX {
                return Err(Error::corrupt(
                    self.place,
                    format!(
                        "offset {offset}: record {expected} is there, and the next file has it too"
                    ),
                ));
            }
            expected = frame.lsn_first + u64::from(frame.count);
            offset = frame.end;
        }
        Ok(())
    }

    /// Takes the records of all frames until one does not verify or begins where the next file does.
    fn read(
        &self,
        next: Option<u64>,
        expected: &mut u64,
        mut take: impl FnMut(Record),
    ) -> Result<Frames> {
        let Self { view, header, place } = *self;
        let mut frames = Frames { end: HEADER_LEN, last: None, chain: header.chain };
        while next != Some(*expected) {
            let offset = frames.end;
            let Some(frame) = frame_at(view, offset, header, *expected) else { break };
            if frame.lsn_first != *expected {
                return Err(Error::corrupt(
                    place,
                    format!("offset {offset}: record {expected} is missing"),
                ));
            }
            let body = offset + FRAME_HEADER_LEN;
            for (lsn, kind, payload) in records(&frame, place)? {
                let start = body + (payload.as_ptr() as usize - frame.body.as_ptr() as usize);
                let (file_lsn_first, len) = (header.lsn_first, payload.len());
                take(Record { lsn, kind, file_lsn_first, file: view.clone(), start, len });
            }
            *expected += u64::from(frame.count);
            let bytes = offset..frame.end.min(view.len());
            let chain_before = std::mem::replace(&mut frames.chain, frame.crc);
            let (place, lsn_first) = (place.to_owned(), frame.lsn_first);
            let is_synced = bytes.end <= header.synced_end as usize;
            frames.last = Some(LastFrame { place, lsn_first, bytes, chain_before, is_synced });
            frames.end = frame.end;
        }
        Ok(frames)
    }
}

/// Bytes up to the last one that is not zero. A file of the log is 64 MiB of zeros at first, so they are
/// compared a page at a time.
fn written_len(bytes: &[u8]) -> usize {
    const PAGE: [u8; 4_096] = [0; 4_096];
    let mut len = bytes.len();
    for page in bytes.rchunks(PAGE.len()) {
        if PAGE.get(..page.len()) != Some(page) {
            return len - page.iter().rev().take_while(|byte| **byte == 0).count();
        }
        len -= page.len();
    }
    0
}

/// A good frame behind a bad one means that the bad one was synced once: it is damage.
fn refuse_frames_behind(
    view: &View,
    offset: usize,
    header: &FileHeader,
    place: &str,
    expected: u64,
) -> Result<()> {
    // Space that was prepared and never written holds no frame.
    let end = offset + written_len(view.get(offset..).unwrap_or_default());
    let mut at = offset + ALIGN;
    while at < end && at + FRAME_HEADER_LEN <= view.len() {
        if frame_at(view, at, header, expected).is_some() {
            return Err(Error::corrupt(
                place,
                format!(
                    "offset {offset}: record {expected} is damaged, and whole records follow at offset {at}; \
                     restore a backup, or move the data directory away"
                ),
            ));
        }
        at += ALIGN;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        base::{clock::ManualClock, rng::SeededRng},
        vfs::sim::SimVfs,
        wal::{Writer, frame::put_record},
    };

    #[test]
    fn what_was_written_ends_at_the_last_byte_that_is_not_zero() {
        for (len, last) in
            [(0, None), (1, None), (10_000, None), (10_000, Some(0)), (10_000, Some(9_999))]
        {
            let mut bytes = vec![0; len];
            if let Some(last) = last {
                bytes[last] = 1;
            }
            assert_eq!(written_len(&bytes), last.map_or(0, |last| last + 1));
        }
        let mut bytes = vec![0; 9_000];
        for last in 0..9_000 {
            bytes[last] = 7;
            assert_eq!(written_len(&bytes), last + 1);
        }
    }

    const DB: [u8; 16] = [7; 16];

    fn written(groups: u64, file_bytes: u64) -> SimVfs {
        let vfs = SimVfs::new();
        vfs.create_dir(DIRECTORY).unwrap();
        let rng = Arc::new(SeededRng::new(1));
        let clock = Arc::new(ManualClock::new(0));
        let mut writer = Writer::new(Arc::new(vfs.clone()), clock, rng, DB, 0, file_bytes);
        let mut lsn = 1;
        for group in 0..groups {
            let mut body = Vec::new();
            for record in 0..=group % 3 {
                put_record(RecordKind::Writes, format!("{group}/{record}").as_bytes(), &mut body);
            }
            writer.append(lsn, (group % 3 + 1) as u32, &body).unwrap();
            lsn += group % 3 + 1;
        }
        vfs
    }

    fn texts(vfs: &SimVfs, after: u64) -> Result<Vec<String>> {
        let (records, _) = read(vfs, DB, after)?;
        Ok(records
            .iter()
            .map(|record| String::from_utf8_lossy(record.payload()).into_owned())
            .collect())
    }

    #[test]
    fn groups_are_read_back_over_several_files() {
        let vfs = written(20, 300);
        assert!(vfs.files().len() > 3);
        let all = texts(&vfs, 0).unwrap();
        assert_eq!(all.len(), 39);
        assert_eq!(texts(&vfs, 30).unwrap(), all[30..]);
    }

    /// Space that an older file of the same database left behind holds whole frames with the right
    /// numbers: the salt of each file tells them apart.
    #[test]
    fn frames_of_an_earlier_life_of_the_space_are_not_records() {
        let write = |seed, groups: u64| {
            let vfs = SimVfs::new();
            vfs.create_dir(DIRECTORY).unwrap();
            let clock = Arc::new(ManualClock::new(0));
            let rng = Arc::new(SeededRng::new(seed));
            let mut writer = Writer::new(Arc::new(vfs.clone()), clock, rng, DB, 0, 4_096);
            for group in 0..groups {
                let mut body = Vec::new();
                put_record(RecordKind::Writes, format!("{seed}/{group}").as_bytes(), &mut body);
                writer.append(group + 1, 1, &body).unwrap();
            }
            vfs
        };
        let (old, new) = (write(1, 20), write(2, 3));
        let (path, old_bytes) = old.files().into_iter().next().unwrap();
        let mut bytes = new.files()[&path].clone();
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        let used = used.next_multiple_of(ALIGN);
        bytes[used..].copy_from_slice(&old_bytes[used..]);
        assert!(bytes[used..].iter().any(|&byte| byte != 0), "there is something to mistake");
        new.set_file(&path, Some(bytes));
        assert_eq!(texts(&new, 0).unwrap(), ["2/0", "2/1", "2/2"]);
    }

    #[test]
    fn a_tail_cut_at_every_byte_is_a_prefix() {
        let vfs = written(6, 4_096);
        let all = texts(&vfs, 0).unwrap();
        let (path, bytes) = vfs.files().into_iter().next().unwrap();
        for len in HEADER_LEN..bytes.len() {
            for zeros in [false, true] {
                let mut cut = bytes[..len].to_vec();
                if zeros {
                    cut.resize(bytes.len(), 0);
                }
                vfs.set_file(&path, Some(cut));
                let read = texts(&vfs, 0).unwrap();
                assert_eq!(read, all[..read.len()]);
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_refused_or_cuts_the_last_group() {
        let vfs = written(6, 4_096);
        let all = texts(&vfs, 0).unwrap();
        let (path, bytes) = vfs.files().into_iter().next().unwrap();
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        let mut refused = 0;
        for at in 0..used {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            vfs.set_file(&path, Some(damaged));
            match texts(&vfs, 0) {
                Err(Error::Corrupt { place, .. }) => {
                    assert!(place.contains(".wal"));
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
                // The last group cannot be told from a torn write; padding is not covered.
                Ok(read) => assert!(read == all || read == all[..all.len() - 3]),
            }
        }
        assert!(refused > used / 2);
    }

    /// A backup takes the log as it was, while others go on writing to it.
    #[test]
    fn what_is_written_later_is_not_among_the_files_of_before() {
        let vfs = SimVfs::new();
        vfs.create_dir(DIRECTORY).unwrap();
        let rng = Arc::new(SeededRng::new(1));
        let clock = Arc::new(ManualClock::new(0));
        let mut writer = Writer::new(Arc::new(vfs.clone()), clock, rng, DB, 0, 300);
        let mut append = |lsn: u64| {
            let mut body = Vec::new();
            put_record(RecordKind::Writes, format!("record {lsn}").as_bytes(), &mut body);
            writer.append(lsn, 1, &body).unwrap();
            writer.end()
        };
        for last in 1..12 {
            let end = append(last);
            // As a copy would have them: before, and after some more was written.
            let copied = |end| {
                let copy = SimVfs::new();
                for (path, len) in files_after(&vfs, 0, last, end).unwrap() {
                    copy.set_file(&path, Some(vfs.files()[&path][..len as usize].to_vec()));
                }
                copy.create_dir(DIRECTORY).unwrap();
                texts(&copy, 0).map(|records| records.len() as u64)
            };
            assert_eq!(copied(end).unwrap(), last);
            if last == 6 {
                (7..40).for_each(|lsn| {
                    append(lsn);
                });
                assert_eq!(copied(end).unwrap(), last);
                break;
            }
        }
        // Nothing was written by this process yet, and then something is.
        let quiet = written(3, 4_096);
        let lsn = texts(&quiet, 0).unwrap().len() as u64;
        quiet.set_file(&format!("{DIRECTORY}/{:020}.wal", lsn + 1), Some(vec![1; 100]));
        assert_eq!(files_after(&quiet, 0, lsn, None).unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_goes_on_behind_the_next_ones_beginning_is_refused() {
        // Two histories: one goes on in its file, the other with a copy of record 5.
        let vfs = written(9, 4_096);
        let path = vfs.files().into_keys().next().unwrap();
        let long = vfs.files()[&path].clone();
        let short = written(3, 4_096);
        let tail = read(&short, DB, 0).unwrap().1;
        short.create_dir("tmp").unwrap();
        super::super::harden(&short, &SeededRng::new(5), &tail).unwrap();
        assert_eq!(texts(&short, 0).unwrap().len(), 6);
        short.set_file(&path, Some(long));
        let error = texts(&short, 0).unwrap_err().to_string();
        assert!(error.contains("the next file has it too"), "{error}");
    }

    #[test]
    fn a_missing_or_foreign_file_is_refused() {
        let vfs = written(20, 300);
        let middle = vfs.files().keys().nth(1).unwrap().clone();
        let bytes = vfs.files()[&middle].clone();
        vfs.set_file(&middle, None);
        assert!(matches!(texts(&vfs, 0), Err(Error::Corrupt { .. })));
        vfs.set_file(&middle, Some(bytes));
        assert!(texts(&vfs, 0).is_ok());
        assert!(read(&vfs, [8; 16], 0).is_err());
    }
}
