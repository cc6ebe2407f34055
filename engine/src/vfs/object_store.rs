//! A store of whole files by name, of which the ones above are an object store's clients.
//!
//! ```text
//! put("seg/l0/019a….seg", …)                           once; never another content under the same name
//! get("seg/l0/019a….seg", …)                           all of it
//! get_part("seg/l0/019a….seg", Tail(32))               ([…; 32], 245179): its last 32 bytes, and its length
//! get_part("seg/l0/019a….seg", Range(0..65536))        ([…; 65536], 245179)
//! ```

use std::{io, ops::Range};

use super::VfsFile;

/// A store of whole files by name. All calls block, and several threads may make them at once.
///
/// Errors are those of `std::io`; one that is neither `NotFound` nor `AlreadyExists` may go away when the call is made again.
pub trait Objects: Send + Sync + 'static {
    /// Stores the content of a file under a name that has none yet, durably. A call whose answer was lost may be made again: where the same bytes are there
    /// already, it succeeds. `AlreadyExists` where others are.
    fn put(&self, name: &str, content: &dyn VfsFile) -> io::Result<()>;
    /// Writes the content of a name to an empty file: all of it, or an error. `NotFound` where there is no such name.
    fn get(&self, name: &str, into: &dyn VfsFile) -> io::Result<()>;
    /// Some bytes of a name, and how many it has in all. `NotFound` where there is no such name.
    fn get_part(&self, name: &str, part: ObjectPart) -> io::Result<(Vec<u8>, u64)>;
    /// All names that begin with `prefix`, sorted, with the number of bytes of each: `seg/` has `("seg/l0/019a….seg", 245179)`.
    fn list_sizes(&self, prefix: &str) -> io::Result<Vec<(String, u64)>>;
    /// The same without sizes.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        Ok(self.list_sizes(prefix)?.into_iter().map(|(name, _)| name).collect())
    }
    /// Removes a name; one that is not there is fine.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Some bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectPart {
    /// The last ones; all where there are not so many.
    Tail(u64),
    /// Those from an offset to before another one, fewer where the object ends before.
    Range(Range<u64>),
}

impl ObjectPart {
    /// Offsets in an object of `len` bytes.
    pub fn of(&self, len: u64) -> Range<u64> {
        match self {
            Self::Tail(bytes) => len.saturating_sub(*bytes)..len,
            Self::Range(range) => range.start.min(len)..range.end.min(len),
        }
    }
}

/// A name that is not there was to be removed anyway.
pub fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
