//! Writing a segment: one column after the other, then the footer.
//!
//! The file is made under `tmp/`, read back and verified in full, synced, and renamed into place.
//! Only then may a log record name it.

use std::sync::Arc;

use super::{
    layout::{
        ALIGN, BlockRef, Footer, HEADER_LEN, IdEncoding, MAGIC, MAJOR, MINOR, Section, SectionKind,
        SegmentMeta, block_crc, write_trailer,
    },
    reader::Segment,
    runs::RunDirectory,
};
use crate::{
    base::{coding::Put, hash::crc},
    encode::{BLOCK_ROWS, ints, numbers, text},
    error::{Error, IoContext, Result},
    index::{
        bitmaps::{BlockBitmaps, ROLLUP_DIMENSIONS},
        zones::{CodeZone, NumberZone},
    },
    vfs::{Vfs, VfsFile},
};

/// Level of zstd for dictionaries, which are read often and written once.
const DICTIONARY_LEVEL: i32 = 3;
/// Level of zstd for event ids, which are hardly ever read.
const COLD_LEVEL: i32 = 1;

/// Facts of a whole segment that its writer was told.
#[derive(Debug, Clone, Copy)]
pub struct ColumnStats {
    /// Number of rows.
    pub rows: u32,
    /// Earliest timestamp.
    pub ts_min: i64,
    /// Latest timestamp.
    pub ts_max: i64,
}

/// A segment under construction.
pub struct SegmentWriter<'a> {
    vfs: &'a dyn Vfs,
    uuid: uuid::Uuid,
    db: [u8; 16],
    place: String,
    file: Arc<dyn VfsFile>,
    offset: u64,
    sections: Vec<Section>,
}

impl<'a> SegmentWriter<'a> {
    /// Starts a segment of database `db`.
    pub fn new(vfs: &'a dyn Vfs, uuid: uuid::Uuid, db: [u8; 16]) -> Result<Self> {
        let place = format!("tmp/{uuid}.seg");
        let file = vfs.create(&place).at(&place)?;
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend_from_slice(&MAGIC);
        header.put_u16(MAJOR);
        header.put_u16(MINOR);
        header.extend_from_slice(uuid.as_bytes());
        header.extend_from_slice(&db);
        header.resize(HEADER_LEN - 4, 0);
        header.put_u32(crc(&[&header]));
        file.write_at(0, &header).at(&place)?;
        Ok(Self { vfs, uuid, db, place, file, offset: HEADER_LEN as u64, sections: Vec::new() })
    }

    /// The run directory.
    pub fn runs(&mut self, runs: &RunDirectory) -> Result<()> {
        let mut bytes = Vec::new();
        runs.write(&mut bytes);
        self.section(SectionKind::Runs, "", Vec::new(), std::iter::once(Ok(bytes)))
    }

    /// The timestamps.
    pub fn times(&mut self, timestamps: &[i64]) -> Result<()> {
        let blocks = timestamps.chunks(BLOCK_ROWS).map(|block| Ok(int_block(block)));
        self.section(SectionKind::Times, "", Vec::new(), blocks)
    }

    /// The event ids, `None` where the server made one.
    pub fn event_ids(&mut self, ids: &[Option<&[u8]>]) -> Result<()> {
        let blocks = ids.chunks(BLOCK_ROWS).map(event_id_block);
        self.section(SectionKind::EventIds, "", Vec::new(), blocks)
    }

    /// The users: hashes in rising order, their ids in the same order, and a code for each row,
    /// where 0 is "none" and n the n-th user.
    pub fn users(&mut self, hashes: &[u128], users: &[&[u8]], codes: &[i64]) -> Result<()> {
        assert!(hashes.len() == users.len() && hashes.is_sorted());
        let mut extra = Vec::new();
        extra.put_varint(hashes.len() as u64);
        let blocks = hashes
            .chunks(BLOCK_ROWS)
            .map(|block| Ok(block.iter().flat_map(|hash| hash.to_le_bytes()).collect()));
        self.section(SectionKind::UserHashes, "", extra.clone(), blocks)?;
        let blocks =
            users.chunks(BLOCK_ROWS).map(|block| text_block(block.iter().copied(), COLD_LEVEL));
        self.section(SectionKind::Users, "", extra, blocks)?;
        let blocks = codes.chunks(BLOCK_ROWS).map(|block| Ok(int_block(block)));
        self.section(SectionKind::UserCodes, "", Vec::new(), blocks)
    }

    /// A string property: sorted distinct values and a code for each row, where 0 is "absent" and n
    /// the n-th value.
    pub fn text(&mut self, name: &str, values: &[Arc<str>], codes: &[i64]) -> Result<()> {
        assert!(values.is_sorted_by(|a, b| a < b), "a dictionary is sorted and has no value twice");
        let mut extra = Vec::new();
        extra.put_varint(values.len() as u64);
        let blocks = values
            .chunks(BLOCK_ROWS)
            .map(|block| text_block(block.iter().map(|value| value.as_bytes()), DICTIONARY_LEVEL));
        self.section(SectionKind::TextValues, name, extra, blocks)?;

        let mut zones = Vec::new();
        for block in codes.chunks(BLOCK_ROWS) {
            CodeZone::of(block, values.len()).write(&mut zones);
        }
        let blocks = codes.chunks(BLOCK_ROWS).map(|block| Ok(int_block(block)));
        self.section(SectionKind::TextCodes, name, zones, blocks)?;

        if ROLLUP_DIMENSIONS.contains(&name) {
            let blocks = codes.chunks(BLOCK_ROWS).map(|block| {
                let mut out = Vec::new();
                BlockBitmaps::of(block).write(&mut out).at("bitmap")?;
                Ok(out)
            });
            self.section(SectionKind::Bitmaps, name, Vec::new(), blocks)?;
        }
        Ok(())
    }

    /// A numeric property; NaN is absent.
    pub fn numbers(&mut self, name: &str, values: &[f64]) -> Result<()> {
        let exponent = numbers::choose_exponent(values);
        let mut extra = vec![exponent];
        for block in values.chunks(BLOCK_ROWS) {
            NumberZone::of(block).write(&mut extra);
        }
        let blocks = values.chunks(BLOCK_ROWS).map(|block| {
            let mut out = Vec::new();
            numbers::write(block, exponent, &mut out).at("numbers")?;
            Ok(out)
        });
        self.section(SectionKind::Numbers, name, extra, blocks)
    }

    /// Writes the footer, verifies the whole file, syncs and renames it. The caller syncs the
    /// directory.
    pub fn finish(mut self, stats: ColumnStats) -> Result<SegmentMeta> {
        self.sections.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        let footer = Footer {
            rows: stats.rows,
            ts_min: stats.ts_min,
            ts_max: stats.ts_max,
            sections: std::mem::take(&mut self.sections),
        };
        let bytes = footer.write();
        let footer_crc = crc(&[self.uuid.as_bytes(), &self.db, &bytes]);
        let footer_offset = self.offset;
        self.put(&bytes)?;
        let len = u32::try_from(bytes.len())
            .map_err(|_| Error::invalid("segment", "footer too large"))?;
        self.put(&write_trailer(footer_offset, len, footer_crc))?;
        let meta = SegmentMeta {
            uuid: self.uuid,
            len: self.offset,
            footer_crc,
            rows: stats.rows,
            ts_min: stats.ts_min,
            ts_max: stats.ts_max,
            level: 0,
        };
        self.file.sync().at(&self.place)?;
        let view = self.vfs.map(&self.place).at(&self.place)?;
        Segment::open(view, meta.clone(), self.db)?.verify()?;
        self.vfs.rename(&self.place, &meta.path()).at(&self.place)?;
        Ok(meta)
    }

    fn section(
        &mut self,
        kind: SectionKind,
        name: &str,
        extra: Vec<u8>,
        blocks: impl Iterator<Item = Result<Vec<u8>>>,
    ) -> Result<()> {
        self.offset = self.offset.next_multiple_of(ALIGN as u64);
        let mut refs = Vec::new();
        for (index, bytes) in blocks.enumerate() {
            let bytes = bytes?;
            let crc = block_crc(self.uuid, kind as u16, name, index, &bytes);
            let len = u32::try_from(bytes.len())
                .map_err(|_| Error::invalid("segment", "a block is too large"))?;
            refs.push(BlockRef { offset: self.offset, len, crc });
            self.put(&bytes)?;
        }
        self.sections.push(Section {
            kind: kind as u16,
            name: name.to_owned(),
            extra,
            blocks: refs,
        });
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(self.offset, bytes).at(&self.place)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

fn int_block(values: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    ints::write(values, &mut out);
    out
}

fn text_block<'a>(values: impl Iterator<Item = &'a [u8]>, level: i32) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    text::write(values, level, &mut out).at("dictionary")?;
    Ok(out)
}

fn event_id_block(ids: &[Option<&[u8]>]) -> Result<Vec<u8>> {
    if ids.iter().all(Option::is_none) {
        return Ok(vec![IdEncoding::None as u8]);
    }
    let uuids: Option<Vec<uuid::Uuid>> = ids.iter().map(|id| canonical_uuid((*id)?)).collect();
    if let Some(uuids) = uuids {
        let mut out = vec![IdEncoding::Uuid as u8];
        out.extend(uuids.iter().flat_map(|uuid| uuid.into_bytes()));
        return Ok(out);
    }
    let mut out = vec![IdEncoding::Text as u8];
    text::write(ids.iter().map(|id| id.unwrap_or_default()), COLD_LEVEL, &mut out)
        .at("event ids")?;
    Ok(out)
}

/// The UUID, if the text is exactly what printing it gives.
fn canonical_uuid(text: &[u8]) -> Option<uuid::Uuid> {
    let uuid = uuid::Uuid::try_parse_ascii(text).ok()?;
    (uuid.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).as_bytes() == text)
        .then_some(uuid)
}
