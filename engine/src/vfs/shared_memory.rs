//! Bytes in memory that other processes map by a descriptor, for reading, and that nobody changes any more.
//!
//! A file without a name that the kernel keeps in memory, sealed: whoever has its descriptor can neither write to it nor
//! cut it, the writer included. It is gone with its last descriptor and mapping. No disk is involved, so [`Vfs`](super::Vfs) is not.
//!
//! ```text
//! server                                        process of a SQL statement
//! SharedMemory::new(image of rows), sealed
//! sends the descriptor over a socket      →     SharedMemory::received(descriptor): looks for the seals
//!                                               map(): reads the rows in place, without a copy
//! flush: drops it                               still has its mapping, and the bytes with it
//! ```
//!
//! Memory that is not sealed is refused (`memory that is not sealed`): a process that maps it would trust bytes that the sender
//! can still change under it.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicUsize, Ordering},
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};

use super::View;

/// Its name in `/proc/PID/maps`: `/memfd:inlay-rows (deleted)`.
const NAME: &str = "inlay-rows";
/// Nobody writes, cuts, extends, or takes these seals away.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// How many there are in this process, and their bytes, for the metrics.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Immutable bytes that have a descriptor. `as_fd` is sent; the receiver gets a descriptor of its own.
#[derive(Debug)]
pub struct SharedMemory {
    descriptor: OwnedFd,
    len: usize,
}

impl SharedMemory {
    /// A copy of some bytes, which may be none.
    ///
    /// Errors: when there are no descriptors left, or no memory; what the kernel says.
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create(NAME, flags)?);
        file.write_all(bytes)?;
        // After the last write: from here on not even this process can change them.
        fcntl_add_seals(&file, SEALS)?;
        Ok(Self::counted(file.into(), bytes.len()))
    }

    /// Counts it until it is dropped. Bytes of received memory are those of the sender, which counts them.
    fn counted(descriptor: OwnedFd, len: usize) -> Self {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(len, Ordering::Relaxed);
        Self { descriptor, len }
    }

    /// How many there are in this process, and how many bytes they have: two images of 300 KB are `(2, 600_000)`.
    pub fn in_use() -> (usize, usize) {
        (COUNT.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
    }

    /// Memory that another process has sent.
    ///
    /// Errors: `InvalidInput` when its bytes could still be changed, or the descriptor is none of memory, such as a pipe.
    pub fn received(descriptor: OwnedFd) -> io::Result<Self> {
        match fcntl_get_seals(&descriptor) {
            Ok(seals) if seals.contains(SEALS) => Ok(Self::counted(descriptor, 0)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "memory that is not sealed")),
        }
    }

    /// The bytes, mapped for reading. The view stays when the descriptor is closed.
    ///
    /// Errors: what the kernel says.
    pub fn map(&self) -> io::Result<View> {
        // Private, though nothing can be written: older kernels refuse to share what is sealed against writing.
        let options = memmap2::MmapOptions::new();
        #[expect(unsafe_code, reason = "sealed bytes are immutable")]
        // SAFETY: the seals were set or seen before there was a `Self`, and cannot be taken away: the bytes neither change
        // nor become fewer.
        let map = unsafe { options.map_copy_read_only(&self.descriptor)? };
        Ok(View::new(map))
    }
}

/// Mappings of it, here or elsewhere, stay: only the descriptor is closed.
impl Drop for SharedMemory {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        BYTES.fetch_sub(self.len, Ordering::Relaxed);
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn bytes_are_read_elsewhere_and_changed_nowhere() {
        let memory = SharedMemory::new(b"rows of one namespace").unwrap();
        let copy = memory.as_fd().try_clone_to_owned().unwrap();
        let received = SharedMemory::received(copy).unwrap();
        let view = received.map().unwrap();
        drop(received);
        assert_eq!(&*view, b"rows of one namespace");
        let file = File::from(memory.as_fd().try_clone_to_owned().unwrap());
        assert!(file.write_all_at(b"R", 0).is_err());
        assert!(file.set_len(3).is_err());
        drop((memory, file));
        assert_eq!(&*view, b"rows of one namespace");
    }

    #[test]
    fn memory_that_can_still_change_is_refused() {
        let open = memfd_create("x", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert_eq!(SharedMemory::received(open).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let (pipe, _writer) = io::pipe().unwrap();
        assert!(SharedMemory::received(pipe.into()).is_err());
    }

    #[test]
    fn nothing_can_be_shared_too() {
        assert_eq!(SharedMemory::new(b"").unwrap().map().unwrap().len(), 0);
    }
}
