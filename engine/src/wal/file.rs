//! How a file becomes part of the log: made under `tmp/` with its header and its space, synced, and
//! only then renamed. So every file of the log has a whole header.

use std::{io, sync::Arc};

use super::{DIRECTORY, frame::FileHeader};
use crate::{
    error::{Error, IoContext, Result},
    vfs::{Vfs, VfsFile},
};

/// A log file that can be written to.
pub struct LogFile {
    /// The open file.
    pub file: Arc<dyn VfsFile>,
    /// Header of the file.
    pub header: FileHeader,
    /// Path of the file: under `tmp/` until it is adopted, then in the log.
    pub place: String,
}

impl LogFile {
    /// Makes a file under a temporary name, whole and synced: the header, `frames`, and zeros up to
    /// `len` bytes. Nothing of it is left when that fails.
    pub fn prepare(vfs: &dyn Vfs, header: FileHeader, frames: &[u8], len: u64) -> Result<Self> {
        let place = format!("tmp/{:020}.wal", header.lsn_first);
        match vfs.remove(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(&place, &error));
            }
            _ => {}
        }
        let start = [&header.write(), frames].concat();
        let make = || -> io::Result<Arc<dyn VfsFile>> {
            let file = vfs.create(&place)?;
            file.allocate(len.max(start.len() as u64))?;
            file.write_at(0, &start)?;
            file.sync()?;
            Ok(file)
        };
        match make() {
            Ok(file) => Ok(Self { file, header, place }),
            Err(error) => {
                let _ = vfs.remove(&place);
                Err(Error::io(place, &error))
            }
        }
    }

    /// Gives a prepared file its name in the log, durably. A file of that name is replaced.
    pub fn adopt(self, vfs: &dyn Vfs) -> Result<Self> {
        let place = format!("{DIRECTORY}/{:020}.wal", self.header.lsn_first);
        vfs.rename(&self.place, &place).at(&place)?;
        vfs.sync_dir(DIRECTORY).at(DIRECTORY)?;
        Ok(Self { place, ..self })
    }
}
