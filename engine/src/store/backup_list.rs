//! The list that makes a directory a backup: every file with its length and checksum.
//!
//! It is plain text, so that a person can read it and other tools can check it, and it is written
//! last: a directory without a whole list is not a backup. Layout: `doc/format.md`, "Backups".

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use std::fmt::Write as _;

use crate::{
    base::hash::crc,
    error::{Error, IoContext, Result},
    vfs::{Vfs, VfsFile},
};

/// Name of the list.
pub const LIST: &str = "BACKUP";
const FIRST_LINE: &str = "inlay backup 1";
/// Bytes that are read at a time.
pub const CHUNK_BYTES: usize = 1 << 20;

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFile {
    /// Path inside the backup, and inside the data directory.
    pub path: String,
    /// Length in bytes.
    pub len: u64,
    /// CRC-32 of its bytes.
    pub crc: u32,
}

/// Contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupList {
    /// Identity of the database that was backed up.
    pub db: uuid::Uuid,
    /// LSN of the last record that it holds.
    pub lsn: u64,
    /// When it was taken.
    pub created_ms: i64,
    /// Its files, by path.
    pub files: Vec<BackupFile>,
}

impl BackupList {
    /// The list as text.
    pub fn write(&self) -> String {
        let mut out = format!("{FIRST_LINE}\n");
        // Writing to a string does not fail.
        let _ = writeln!(out, "db {}", self.db);
        let _ = writeln!(out, "lsn {}", self.lsn);
        let _ = writeln!(out, "created_ms {}", self.created_ms);
        for file in &self.files {
            let _ = writeln!(out, "file {:08x} {} {}", file.crc, file.len, file.path);
        }
        let sum = crc(&[out.as_bytes()]);
        let _ = writeln!(out, "end {sum:08x}");
        out
    }

    /// Reads a list back.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |detail: &str| Error::corrupt(LIST, detail);
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("is not text"))?;
        let Some(body) = text.strip_suffix('\n') else { return Err(wrong("ends too early")) };
        let (body, end) = body.rsplit_once('\n').ok_or_else(|| wrong("ends too early"))?;
        let sum = end.strip_prefix("end ").and_then(|sum| u32::from_str_radix(sum, 16).ok());
        if sum != Some(crc(&[body.as_bytes(), b"\n"])) {
            return Err(wrong("checksum mismatch"));
        }
        // Not `lines`, which takes a carriage return from the end of a path.
        let mut lines = body.split('\n');
        if lines.next() != Some(FIRST_LINE) {
            return Err(Error::invalid("backup", "has a format that this build does not read"));
        }
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.strip_prefix(' ')).ok_or_else(|| wrong("lacks a field"))
        };
        let db = uuid::Uuid::parse_str(field("db")?).map_err(|_| wrong("has no database"))?;
        let lsn = field("lsn")?.parse().map_err(|_| wrong("has no LSN"))?;
        let created_ms = field("created_ms")?.parse().map_err(|_| wrong("has no time"))?;
        let files = lines
            .map(|line| parse_file(line).ok_or_else(|| wrong("has a line that names no file")))
            .collect::<Result<_>>()?;
        Ok(Self { db, lsn, created_ms, files })
    }

    /// Reads the list of a directory. Errors: `Invalid` when it is not a backup.
    pub fn load(vfs: &dyn Vfs, directory: &str) -> Result<Self> {
        let place = join(directory, LIST);
        let file = vfs.open(&place).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::invalid(
                "backup",
                format!("{place} does not exist: this is not a backup, or one that did not finish"),
            ),
            _ => Error::io(&place, &error),
        })?;
        Self::read(&crate::vfs::read_all(&*file).at(&place)?)
    }

    /// Whether the list has a file of this path and length, as immutable files have only once.
    pub fn holds(&self, path: &str, len: u64) -> bool {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path));
        at.ok().and_then(|at| self.files.get(at)).is_some_and(|file| file.len == len)
    }
}

fn parse_file(line: &str) -> Option<BackupFile> {
    let mut parts = line.strip_prefix("file ")?.splitn(3, ' ');
    let crc = u32::from_str_radix(parts.next()?, 16).ok()?;
    let len = parts.next()?.parse().ok()?;
    let path = parts.next()?;
    // A list may come from anywhere: its paths stay below the directory.
    let is_inside =
        !path.starts_with('/') && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    is_inside.then(|| BackupFile { path: path.to_owned(), len, crc })
}

/// A path below a directory.
pub fn join(directory: &str, path: &str) -> String {
    if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") }
}

/// Length and checksum of a file, read piece by piece.
pub fn measure(
    file: &dyn VfsFile,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<(u64, u32)> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    loop {
        let read = file.read_at(offset, &mut buffer).at("backup")?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        hasher.update(bytes);
        each(bytes)?;
        offset += read as u64;
    }
    Ok((offset, hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list() -> BackupList {
        BackupList {
            db: uuid::Uuid::from_u128(7),
            lsn: 99,
            created_ms: 5,
            files: vec![
                BackupFile { path: "SUPER.a".into(), len: 4_096, crc: 1 },
                BackupFile { path: "seg/2026-11-21/x.seg".into(), len: 0, crc: u32::MAX },
            ],
        }
    }

    #[test]
    fn lists_round_trip_and_damage_is_noticed() {
        let text = list().write();
        assert_eq!(BackupList::read(text.as_bytes()).unwrap(), list());
        assert!(list().holds("SUPER.a", 4_096) && !list().holds("SUPER.a", 5));
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            assert!(BackupList::read(&damaged).is_err(), "byte {at}");
            assert!(BackupList::read(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn paths_that_leave_the_directory_are_refused() {
        for path in ["../x", "/etc/passwd", "a/../../b", "a//b", "./a", ""] {
            let mut list = list();
            list.files[0].path = path.to_owned();
            assert!(BackupList::read(list.write().as_bytes()).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = BackupList::read(text.as_bytes());
        }
    }
}
