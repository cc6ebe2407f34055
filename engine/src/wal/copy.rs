//! A log file of records that are in no file: for a copy of a store whose log is elsewhere.
//!
//! ```text
//! file_of([record 41, record 42], …)      "wal/00000000000000000041.wal", with a frame for each
//! ```

use super::{
    DIRECTORY,
    frame::{FileHeader, HEADER_LEN, build, put_record},
    reader::Record,
};

/// Path and bytes of a log file with these records, which follow each other; `None` where there is none.
///
/// Each record has a frame of its own, whatever group it was appended in.
pub fn file_of(records: &[Record], db: [u8; 16], salt: u64) -> Option<(String, Vec<u8>)> {
    let lsn_first = records.first()?.lsn;
    let mut header = FileHeader { db, salt, lsn_first, chain: 0, synced_end: 0 };
    let mut frames = Vec::new();
    for record in records {
        let mut body = Vec::new();
        put_record(record.kind, record.payload(), &mut body);
        let offset = (HEADER_LEN + frames.len()) as u64;
        frames.extend(build(&header, offset, record.lsn, 1, &body).0);
    }
    header.synced_end = u32::try_from(HEADER_LEN + frames.len()).unwrap_or(0);
    Some((format!("{DIRECTORY}/{lsn_first:020}.wal"), [header.write(), frames].concat()))
}
