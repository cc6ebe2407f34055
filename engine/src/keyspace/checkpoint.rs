//! Checkpoints: the whole keyspace as one sorted file, so that the log before it can go.
//!
//! Layout: `doc/format.md`, "Checkpoints".

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use super::tree::Tree;
use crate::{
    base::{
        coding::{Cursor, Put},
        hash::crc,
    },
    error::{Error, IoContext, Result},
    vfs::Vfs,
};

/// Directory of the checkpoints.
pub const DIRECTORY: &str = "ckpt";
const MAGIC: [u8; 8] = *b"INLAYCKP";
const VERSION: u32 = 1;
/// A block is closed when it passes this size, so a damaged one names a small place.
const BLOCK_BYTES: usize = 16 * 1024;

/// Path of the checkpoint at `lsn`.
pub fn path(lsn: u64) -> String {
    format!("{DIRECTORY}/{lsn:020}.kv")
}

/// Writes `tree` as of `lsn` under `tmp/`, syncs it and renames it into place, directory included.
pub fn write(vfs: &dyn Vfs, db: [u8; 16], lsn: u64, tree: &Tree) -> Result<()> {
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.put_u32(VERSION);
    out.extend_from_slice(&db);
    out.put_u64(lsn);
    out.put_u64(tree.len() as u64);
    let header_crc = crc(&[&out]);
    out.put_u32(header_crc);

    let mut block = Vec::new();
    let mut before: &[u8] = &[];
    for (key, value) in tree.iter() {
        let shared = before.iter().zip(key.iter()).take_while(|(a, b)| a == b).count();
        block.put_varint(shared as u64);
        block.put_bytes(key.get(shared..).unwrap_or_default());
        block.put_bytes(value);
        before = key;
        if block.len() >= BLOCK_BYTES {
            put_block(&mut block, lsn, &mut out);
            before = &[];
        }
    }
    put_block(&mut block, lsn, &mut out);

    let (temporary, place) = (format!("tmp/{lsn:020}.kv"), path(lsn));
    let _ = vfs.remove(&temporary);
    let file = vfs.create(&temporary).at(&temporary)?;
    file.write_at(0, &out).at(&temporary)?;
    file.sync().at(&temporary)?;
    vfs.rename(&temporary, &place).at(&place)?;
    vfs.sync_dir(DIRECTORY).at(DIRECTORY)
}

fn put_block(block: &mut Vec<u8>, lsn: u64, out: &mut Vec<u8>) {
    if !block.is_empty() {
        out.put_u32(block.len() as u32);
        out.put_u32(crc(&[&lsn.to_le_bytes(), &(out.len() as u64).to_le_bytes(), block]));
        out.append(block);
    }
}

/// Reads the checkpoint at `lsn`. Errors: `Corrupt` naming the offset of the damage.
pub fn read(vfs: &dyn Vfs, db: [u8; 16], lsn: u64) -> Result<Tree> {
    let place = path(lsn);
    let view = vfs.map(&place).at(&place)?;
    let mut cursor = Cursor::new(&view, &place);
    let header = cursor.take(8 + 4 + 16 + 8 + 8)?;
    if cursor.u32()? != crc(&[header]) {
        return Err(Error::corrupt(place, "the header's checksum does not match"));
    }
    let mut fields = Cursor::new(header, &place);
    let magic = fields.take(8)?;
    let version = fields.u32()?;
    if magic != MAGIC || version != VERSION || fields.take(16)? != db || fields.u64()? != lsn {
        return Err(fields.error("is not the recorded checkpoint"));
    }
    let count = fields.u64()?;
    let mut tree = Tree::default();
    while cursor.remaining() > 0 {
        let offset = view.len() - cursor.remaining();
        let (len, block_crc) = (cursor.u32()? as usize, cursor.u32()?);
        let block = cursor.take(len)?;
        if crc(&[&lsn.to_le_bytes(), &(offset as u64 + 4).to_le_bytes(), block]) != block_crc {
            return Err(Error::corrupt(&place, format!("offset {offset}: checksum mismatch")));
        }
        read_block(block, &place, &mut tree)?;
    }
    if tree.len() as u64 != count {
        return Err(Error::corrupt(&place, "holds another number of keys than recorded"));
    }
    Ok(tree)
}

fn read_block(block: &[u8], place: &str, tree: &mut Tree) -> Result<()> {
    let mut cursor = Cursor::new(block, place);
    let mut before: Vec<u8> = Vec::new();
    while cursor.remaining() > 0 {
        // Each key may repeat the one before for two bytes: a block that went on beyond its size
        // would unfold to gigabytes.
        if block.len() - cursor.remaining() >= BLOCK_BYTES {
            return Err(cursor.error("a block is too large"));
        }
        let shared = cursor.varint()? as usize;
        let prefix = before.get(..shared).ok_or_else(|| cursor.error("a key shares too much"))?;
        let key = [prefix, cursor.bytes()?].concat();
        tree.apply(key.as_slice().into(), Some(cursor.bytes()?.into()));
        before = key;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::sim::SimVfs;

    #[test]
    fn a_checkpoint_is_read_back_and_damage_is_noticed() {
        let mut tree = Tree::default();
        for n in 0..2_000u32 {
            let value = vec![n as u8; (n % 50) as usize];
            tree.apply(format!("key/{n:05}").as_bytes().into(), Some(value.into()));
        }
        let vfs = SimVfs::new();
        write(&vfs, [1; 16], 77, &tree).unwrap();
        let read_back = read(&vfs, [1; 16], 77).unwrap();
        assert!(tree.iter().eq(read_back.iter()));
        let bytes = vfs.files()[&path(77)].clone();
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            vfs.set_file(&path(77), Some(damaged));
            assert!(read(&vfs, [1; 16], 77).is_err(), "byte {at}");
        }
    }

    /// A key repeats the one before in two bytes, so a block that goes on beyond its size unfolds to
    /// far more than it has.
    #[test]
    fn a_block_beyond_its_size_is_refused() {
        let mut block = Vec::new();
        block.put_varint(0);
        block.put_bytes(&[b'k'; BLOCK_BYTES]);
        block.put_bytes(b"");
        assert!(read_block(&block, "test", &mut Tree::default()).is_ok());
        block.put_varint(BLOCK_BYTES as u64);
        block.put_bytes(b"1");
        block.put_bytes(b"");
        assert!(read_block(&block, "test", &mut Tree::default()).is_err());
    }
}
