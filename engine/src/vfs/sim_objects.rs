//! An object store in memory whose calls fail as a test says.
//!
//! ```text
//! fail_at(0, TimedOut)                  the next call fails before it does anything
//! lose_answer_at(2, ConnectionReset)    the third call from now is carried out, and its caller gets the error all the same
//! ```

use std::{collections::BTreeMap, io, sync::Arc};

use parking_lot::Mutex;

use super::{
    VfsFile,
    object_store::{ObjectPart, Objects},
    read_all,
};

/// Files by name. Clones share them.
#[derive(Default, Clone)]
pub struct SimObjects(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    /// Calls before the one that fails, with what it fails, and whether it is carried out.
    fault: Option<(usize, io::ErrorKind, bool)>,
}

impl SimObjects {
    /// A call fails before it does anything: the next one, or the one after so many others.
    pub fn fail_at(&self, calls: usize, kind: io::ErrorKind) {
        self.0.lock().fault = Some((calls, kind, false));
    }

    /// A call is carried out, and fails all the same.
    pub fn lose_answer_at(&self, calls: usize, kind: io::ErrorKind) {
        self.0.lock().fault = Some((calls, kind, true));
    }

    /// Names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.lock().files.keys().cloned().collect()
    }

    /// What a call comes to on the files, with the fault that it meets.
    fn call<T>(
        &self,
        run: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.0.lock();
        match state.fault.take() {
            None => run(&mut state.files),
            Some((0, kind, false)) => Err(kind.into()),
            Some((0, kind, true)) => run(&mut state.files).and(Err(kind.into())),
            Some((calls, kind, is_done)) => {
                state.fault = Some((calls - 1, kind, is_done));
                run(&mut state.files)
            }
        }
    }
}

impl Objects for SimObjects {
    fn put(&self, name: &str, content: &dyn VfsFile) -> io::Result<()> {
        let bytes = read_all(content)?;
        self.call(|files| match files.get(name) {
            Some(there) if *there != bytes => Err(io::ErrorKind::AlreadyExists.into()),
            _ => {
                files.insert(name.to_owned(), bytes);
                Ok(())
            }
        })
    }

    fn get(&self, name: &str, into: &dyn VfsFile) -> io::Result<()> {
        let bytes = self
            .call(|files| files.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()));
        into.write_at(0, &bytes?)
    }

    fn get_part(&self, name: &str, part: ObjectPart) -> io::Result<(Vec<u8>, u64)> {
        self.call(|files| {
            let file = files.get(name).ok_or(io::ErrorKind::NotFound)?;
            let len = file.len() as u64;
            let range = part.of(len);
            let bytes = file.get(range.start as usize..range.end as usize);
            Ok((bytes.unwrap_or_default().to_vec(), len))
        })
    }

    fn list_sizes(&self, prefix: &str) -> io::Result<Vec<(String, u64)>> {
        self.call(|files| {
            let found = files.iter().filter(|(name, _)| name.starts_with(prefix));
            Ok(found.map(|(name, content)| (name.clone(), content.len() as u64)).collect())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(|files| {
            files.remove(name);
            Ok(())
        })
    }
}
