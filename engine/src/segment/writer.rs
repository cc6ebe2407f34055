//! Writing a segment: one column after the other, block by block, then the footer.
//!
//! Columns come from *sources*, which are asked for the values of one block at a time, so that a
//! column is never in memory as a whole unless its owner has it there. The file is made under
//! `tmp/`, synced, read back and verified in full, and renamed into place. Only then may a log
//! record name it.
//!
//! Every column's values are hashed as they are handed in, and again as they are read back: a bit
//! that flips in memory between the two is noticed before the old copy is given up.
//!
//! ```text
//! SegmentWriter::new       tmp/019a….seg, header
//! runs                     first: it says how many tenants there are
//! times, event_ids, users, user_codes
//! text_values, text_codes  for each string property      listed_text_codes   where few rows have it
//! numbers                  for each numeric property     listed_numbers      where few rows have it
//! finish                   rollups, footer, trailer; sync; open and verify; compare the hashes; rename
//! ```
//!
//! A difference ends it, and the file never gets its name:
//! `tmp/019a….seg: column 'ms' was read back with other values than were written`.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    event_ids::EventIds,
    layout::{
        self, ALIGN, BlockRef, Database, FRESH, Footer, HEADER_LEN, MAGIC, MAJOR, MINOR, Section,
        SectionKind, SegmentMeta, USERS_A_BLOCK, block_crc, write_trailer,
    },
    reader::Segment,
    rollups,
    runs::RunDirectory,
    tenants::write_counts,
    verify::ColumnHash,
};
use crate::{
    base::{coding::Put, hash::crc},
    encode::{
        BLOCK_ROWS, ints, numbers,
        text::{self, TextList},
    },
    error::{Error, IoContext, Result},
    index::{
        bitmaps::{BlockBitmaps, ROLLUP_DIMENSIONS},
        zones::{CodeZone, NumberZone},
    },
    vfs::{Vfs, VfsFile},
};

/// Level of zstd for dictionaries, which are read often and written once.
const DICTIONARY_LEVEL: i32 = 3;
/// Level of zstd for users, which are hardly ever read.
const COLD_LEVEL: i32 = 1;

/// A segment under construction.
pub struct SegmentWriter<'a> {
    vfs: &'a dyn Vfs,
    db: Database,
    place: String,
    file: Arc<dyn VfsFile>,
    sections: Vec<Section>,
    hashes: BTreeMap<(u16, String), u64>,
    /// Number of tenants; known once the run directory is written.
    tenants: usize,
    rollup_rows_min: u32,
    /// Facts so far; the length is where the next byte goes.
    meta: SegmentMeta,
}

/// Identity and settings of a new segment.
#[derive(Debug, Clone, Copy)]
pub struct NewSegment {
    /// Name of the file; part of the checksums of blocks and footer.
    pub uuid: uuid::Uuid,
    /// Database that the segment belongs to.
    pub db: Database,
    /// Level: `FRESH`, `MERGED` or `SEALED`.
    pub level: u8,
    /// Number of rows that every column will have.
    pub rows: u32,
    /// Rows from which on a series has rollups; 256 unless the limits say otherwise.
    pub rollup_rows_min: u32,
}

impl<'a> SegmentWriter<'a> {
    /// Starts a segment: creates its file and writes the header. Errors: `Io`, also when the file exists.
    pub fn new(vfs: &'a dyn Vfs, new: NewSegment) -> Result<Self> {
        let NewSegment { uuid, db, level, rows, rollup_rows_min } = new;
        let place = format!("tmp/{uuid}.seg");
        let file = vfs.create(&place).at(&place)?;
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend_from_slice(&MAGIC);
        header.put_u16(MAJOR);
        header.put_u16(MINOR);
        header.extend_from_slice(uuid.as_bytes());
        header.extend_from_slice(&db.id);
        header.resize(HEADER_LEN - 4, 0);
        header.put_u32(crc(&[&header]));
        file.write_at(0, &header).at(&place)?;
        let (len, ts_min, ts_max) = (HEADER_LEN as u64, i64::MAX, i64::MIN);
        let meta = SegmentMeta { uuid, len, footer_crc: 0, rows, ts_min, ts_max, level };
        let (sections, hashes) = (Vec::new(), BTreeMap::new());
        let tenants = 0;
        Ok(Self { vfs, db, place, file, sections, hashes, tenants, rollup_rows_min, meta })
    }

    /// Writes the run directory. It comes first: the number of tenants is taken from it.
    pub fn runs(&mut self, runs: &RunDirectory) -> Result<()> {
        let parts = runs.write().at("run directory")?;
        self.tenants = runs.tenant_ends().count();
        let mut section = Section::new(SectionKind::Runs, "");
        for part in &parts {
            self.block(&mut section, part)?;
        }
        self.sections.push(section);
        Ok(())
    }

    /// Writes the timestamps. `source` appends those of the next block, as many as it is asked for: of 70,000 rows first 65,536, then
    /// 4,464. Another number is a mistake of the caller, and panics.
    pub fn times(&mut self, source: impl FnMut(usize, &mut Vec<i64>) -> Result<()>) -> Result<()> {
        let mut section = Section::new(SectionKind::Times, "");
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        self.int_blocks(&mut section, source, |values| {
            min = min.min(values.iter().copied().min().unwrap_or(i64::MAX));
            max = max.max(values.iter().copied().max().unwrap_or(i64::MIN));
            Ok(())
        })?;
        (self.meta.ts_min, self.meta.ts_max) = (min, max);
        self.sections.push(section);
        Ok(())
    }

    /// Writes the event ids. `source` appends those of the next block, as many as it is asked for.
    pub fn event_ids(
        &mut self,
        mut source: impl FnMut(usize, &mut EventIds) -> Result<()>,
    ) -> Result<()> {
        let mut section = Section::new(SectionKind::EventIds, "");
        let mut hash = ColumnHash::default();
        for rows in self.blocks() {
            let mut ids = EventIds::default();
            source(rows, &mut ids)?;
            assert_eq!(ids.len(), rows, "a source gives what it was asked for");
            hash.event_ids(&ids);
            let mut bytes = Vec::new();
            ids.write(&mut bytes)?;
            self.block(&mut section, &bytes)?;
        }
        self.finish_section(section, Some(hash));
        Ok(())
    }

    /// Writes the users, sorted within each tenant, until the source gives fewer than it was asked
    /// for. For each user the source gives the index of the tenant among the tenants, and the id:
    /// `(0, anne) (0, bob) (1, anne)`.
    pub fn users(
        &mut self,
        mut source: impl FnMut(usize, &mut Vec<u32>, &mut TextList) -> Result<()>,
    ) -> Result<()> {
        let mut section = Section::new(SectionKind::Users, "");
        let mut hash = ColumnHash::default();
        let mut counts = vec![0; self.tenants];
        let (mut tenants, mut texts) = (Vec::new(), TextList::default());
        loop {
            tenants.clear();
            texts.clear();
            source(USERS_A_BLOCK, &mut tenants, &mut texts)?;
            assert!(tenants.len() == texts.len() && tenants.is_sorted());
            if !tenants.is_empty() {
                hash.texts(&texts);
                self.block(&mut section, &text_block(&texts, COLD_LEVEL)?)?;
                tenants.iter().for_each(|&tenant| counts[tenant as usize] += 1);
            }
            if tenants.len() < USERS_A_BLOCK {
                break;
            }
        }
        write_counts(&counts, &mut section.extra);
        self.finish_section(section, Some(hash));
        Ok(())
    }

    /// The user of each row: 0 is "none" and n the n-th user of its tenant.
    pub fn user_codes(
        &mut self,
        source: impl FnMut(usize, &mut Vec<i64>) -> Result<()>,
    ) -> Result<()> {
        let mut section = Section::new(SectionKind::UserCodes, "");
        self.int_blocks(&mut section, source, |_| Ok(()))?;
        self.sections.push(section);
        Ok(())
    }

    /// The dictionary of a string property: sorted distinct values, until a source gives less than
    /// it was asked for. Returns how many there are.
    pub fn text_values(
        &mut self,
        name: &str,
        mut source: impl FnMut(usize, &mut TextList) -> Result<()>,
    ) -> Result<usize> {
        let mut section = Section::new(SectionKind::TextValues, name);
        let mut hash = ColumnHash::default();
        let (mut count, mut texts) = (0, TextList::default());
        loop {
            texts.clear();
            source(BLOCK_ROWS, &mut texts)?;
            if texts.len() > 0 {
                hash.texts(&texts);
                self.block(&mut section, &text_block(&texts, DICTIONARY_LEVEL)?)?;
                count += texts.len();
            }
            if texts.len() < BLOCK_ROWS {
                break;
            }
        }
        section.extra.put_varint(count as u64);
        self.finish_section(section, Some(hash));
        Ok(count)
    }

    /// The code of each row of a string property: 0 is "absent" and n the n-th of
    /// `dictionary_len` values.
    pub fn text_codes(
        &mut self,
        name: &str,
        dictionary_len: usize,
        source: impl FnMut(usize, &mut Vec<i64>) -> Result<()>,
    ) -> Result<()> {
        let mut section = Section::new(SectionKind::TextCodes, name);
        let mut zones = Vec::new();
        let mut bitmaps = Vec::new();
        let has_bitmaps = ROLLUP_DIMENSIONS.contains(&name);
        self.int_blocks(&mut section, source, |codes| {
            CodeZone::of(codes, dictionary_len).write(&mut zones);
            if has_bitmaps {
                let mut bytes = Vec::new();
                BlockBitmaps::of(codes).write(&mut bytes).at("bitmap")?;
                bitmaps.push(bytes);
            }
            Ok(())
        })?;
        section.extra = zones;
        self.sections.push(section);
        if has_bitmaps {
            let mut section = Section::new(SectionKind::Bitmaps, name);
            for bytes in bitmaps {
                self.block(&mut section, &bytes)?;
            }
            self.sections.push(section);
        }
        Ok(())
    }

    /// The same of a string property that few rows have, which are listed, rising, with their codes. Not
    /// for a dimension that has bitmaps.
    pub fn listed_text_codes(
        &mut self,
        name: &str,
        dictionary_len: usize,
        listed: &[(u32, i64)],
    ) -> Result<()> {
        let section = Section::new(SectionKind::TextCodes, name);
        self.listed_section(section, listed, |rows, listed, hash, zones, bytes| {
            hash.listed_ints(rows, listed);
            CodeZone::of_listed(rows, listed, dictionary_len).write(zones);
            ints::write_listed(rows, listed, bytes);
            Ok(())
        })
    }

    /// A numeric property with the column's decimal exponent, for all of its blocks; NaN is absent.
    pub fn numbers(
        &mut self,
        name: &str,
        exponent: u8,
        mut source: impl FnMut(usize, &mut Vec<f64>) -> Result<()>,
    ) -> Result<()> {
        let mut section = Section::new(SectionKind::Numbers, name);
        section.extra.put_u8(exponent);
        let mut hash = ColumnHash::default();
        let mut values = Vec::with_capacity(BLOCK_ROWS);
        for rows in self.blocks() {
            values.clear();
            source(rows, &mut values)?;
            assert_eq!(values.len(), rows, "a source gives what it was asked for");
            hash.numbers(&values);
            NumberZone::of(&values).write(&mut section.extra);
            let mut bytes = Vec::new();
            numbers::write(&values, exponent, &mut bytes).at("numbers")?;
            self.block(&mut section, &bytes)?;
        }
        self.finish_section(section, Some(hash));
        Ok(())
    }

    /// The same of a numeric property that few rows have, which are listed, rising, with their numbers.
    pub fn listed_numbers(
        &mut self,
        name: &str,
        exponent: u8,
        listed: &[(u32, f64)],
    ) -> Result<()> {
        let mut section = Section::new(SectionKind::Numbers, name);
        section.extra.put_u8(exponent);
        self.listed_section(section, listed, |rows, listed, hash, zones, bytes| {
            hash.listed_numbers(rows, listed);
            NumberZone::of_listed(rows, listed).write(zones);
            numbers::write_listed(rows, listed, exponent, bytes).at("numbers")
        })
    }

    /// Directory that the file will be in. Known once the times are written, as merged segments lie under their first day.
    pub fn directory(&self) -> String {
        self.meta.directory()
    }

    /// Writes the footer, syncs, reads the file back, compares, and renames it. The caller syncs the
    /// directory. On an error the file under `tmp/` stays, for the caller or the next start to remove.
    ///
    /// Errors: `Io` of the disk, `Corrupt` when what is read back is not what was handed in.
    pub fn finish(mut self) -> Result<SegmentMeta> {
        self.rollups()?;
        let footer = self.footer();
        let bytes = footer.write();
        let footer_crc = layout::footer_crc(self.meta.uuid, &self.db.id, MINOR, &bytes);
        let footer_offset = self.meta.len;
        self.put(&bytes)?;
        let len = u32::try_from(bytes.len())
            .map_err(|_| Error::invalid("segment", "footer too large"))?;
        self.put(&write_trailer(footer_offset, len, footer_crc))?;
        let meta = SegmentMeta { footer_crc, ..self.meta };
        self.file.sync().at(&self.place)?;
        let view = self.vfs.map(&self.place).at(&self.place)?;
        let read_back = Segment::open(view, meta.clone(), self.db)?.verify()?;
        if read_back != self.hashes {
            let differs = read_back.iter().find(|(key, hash)| self.hashes.get(*key) != Some(hash));
            let name = differs.map_or("?", |((_, name), _)| name.as_str());
            return Err(Error::corrupt(
                &self.place,
                format!("column '{name}' was read back with other values than were written"),
            ));
        }
        self.vfs.rename(&self.place, &meta.path()).at(&self.place)?;
        Ok(meta)
    }

    /// Writes the rollups of the columns, which are all written.
    fn rollups(&mut self) -> Result<()> {
        let view = self.vfs.map(&self.place).at(&self.place)?;
        let draft = Segment::assemble(view, self.meta.clone(), self.db, self.footer())?;
        let runs = draft.runs().runs();
        // History is merged into its units soon; a flush is not to wait for what is computed again then.
        let of_days = runs.iter().filter(|run| run.day_count() > 1).map(|run| u64::from(run.rows));
        let is_history = of_days.sum::<u64>() * 2 > u64::from(self.meta.rows);
        let (series, events) = match self.meta.level == FRESH && is_history {
            true => (Vec::new(), Vec::new()),
            false => (
                rollups::worth_it(runs, self.rollup_rows_min),
                rollups::events_worth_it(runs, self.rollup_rows_min),
            ),
        };
        for rollup in rollups::build(&draft, &series, &events)? {
            let mut section = Section::new(rollup.kind, &rollup.name);
            for block in &rollup.blocks {
                self.block(&mut section, block)?;
            }
            self.sections.push(section);
        }
        Ok(())
    }

    /// The footer so far. Sections are written in the order of columns and listed by kind and name.
    fn footer(&mut self) -> Footer {
        self.sections.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Footer {
            rows: self.meta.rows,
            ts_min: self.meta.ts_min,
            ts_max: self.meta.ts_max,
            sections: self.sections.clone(),
        }
    }

    /// Rows of each block.
    fn blocks(&self) -> impl Iterator<Item = usize> + use<> {
        let rows = self.meta.rows as usize;
        (0..rows.div_ceil(BLOCK_ROWS)).map(move |index| (rows - index * BLOCK_ROWS).min(BLOCK_ROWS))
    }

    /// A section of listed rows, block by block. `encode` gets a block's number of rows and those listed,
    /// counted in it, and adds to the column's hash, its zones and the empty bytes of the block.
    fn listed_section<T: Copy>(
        &mut self,
        mut section: Section,
        listed: &[(u32, T)],
        encode: impl Fn(usize, &[(u32, T)], &mut ColumnHash, &mut Vec<u8>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let (mut hash, mut bytes) = (ColumnHash::default(), Vec::new());
        let mut rest = listed;
        for (rows, start) in self.blocks().zip((0u32..).step_by(BLOCK_ROWS)) {
            let end = rest.partition_point(|&(row, _)| row < start + rows as u32);
            let (here, behind) = rest.split_at(end);
            rest = behind;
            let here: Vec<(u32, T)> =
                here.iter().map(|&(row, value)| (row - start, value)).collect();
            bytes.clear();
            encode(rows, &here, &mut hash, &mut section.extra, &mut bytes)?;
            self.block(&mut section, &bytes)?;
        }
        self.finish_section(section, Some(hash));
        Ok(())
    }

    fn int_blocks(
        &mut self,
        section: &mut Section,
        mut source: impl FnMut(usize, &mut Vec<i64>) -> Result<()>,
        mut look: impl FnMut(&[i64]) -> Result<()>,
    ) -> Result<()> {
        let mut hash = ColumnHash::default();
        let mut values = Vec::with_capacity(BLOCK_ROWS);
        let mut bytes = Vec::new();
        for rows in self.blocks() {
            values.clear();
            source(rows, &mut values)?;
            assert_eq!(values.len(), rows, "a source gives what it was asked for");
            hash.ints(&values);
            look(&values)?;
            bytes.clear();
            ints::write(&values, &mut bytes);
            self.block(section, &bytes)?;
        }
        self.hashes.insert((section.kind, section.name.clone()), hash.finish());
        Ok(())
    }

    fn finish_section(&mut self, section: Section, hash: Option<ColumnHash>) {
        if let Some(hash) = hash {
            self.hashes.insert((section.kind, section.name.clone()), hash.finish());
        }
        self.sections.push(section);
    }

    /// Appends a block to a section, which may take turns with another one.
    fn block(&mut self, section: &mut Section, bytes: &[u8]) -> Result<()> {
        if section.blocks.is_empty() {
            self.meta.len = self.meta.len.next_multiple_of(ALIGN as u64);
        }
        let index = section.blocks.len();
        let crc = block_crc(self.meta.uuid, section.kind, &section.name, index, bytes);
        let len = u32::try_from(bytes.len())
            .map_err(|_| Error::invalid("segment", "a block is too large"))?;
        section.blocks.push(BlockRef { offset: self.meta.len, len, crc });
        self.put(bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(self.meta.len, bytes).at(&self.place)?;
        self.meta.len += bytes.len() as u64;
        Ok(())
    }
}

/// A source over values in memory: gives so many as it is asked for, fewer at the end.
pub fn source_of<T: Copy>(values: &[T]) -> impl FnMut(usize, &mut Vec<T>) -> Result<()> {
    let mut rest = values;
    move |rows, out| {
        let (head, tail) = rest.split_at(rows.min(rest.len()));
        out.extend_from_slice(head);
        rest = tail;
        Ok(())
    }
}

/// Event ids of rows that have none.
#[cfg(test)]
pub fn no_event_ids(rows: usize, out: &mut EventIds) -> Result<()> {
    (0..rows).for_each(|_| out.push(None));
    Ok(())
}

fn text_block(texts: &TextList, level: i32) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    text::write(texts.iter(), level, &mut out).at("dictionary")?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        column::SeriesKey,
        event::Namespace,
        segment::layout::read_trailer,
        vfs::{View, sim::SimVfs},
    };

    /// Rollups with a right checksum that are not of the rows beside them: only computing them again
    /// notices.
    #[test]
    fn a_rollup_of_other_rows_is_noticed() {
        let vfs = SimVfs::new();
        vfs.create_dir("seg/l0").unwrap();
        let db = Database { id: [1; 16], hash_seed: 1 };
        let uuid = uuid::Uuid::from_u128(7);
        let new = NewSegment { uuid, db, level: 0, rows: 64, rollup_rows_min: 1 };
        let mut writer = SegmentWriter::new(&vfs, new).unwrap();
        let times: Vec<i64> = (0..64).collect();
        let mut runs = RunDirectory::default();
        let key = SeriesKey { namespace: Namespace(1), tenant: "t".into(), name: "e".into() };
        runs.push(key, &times);
        writer.runs(&runs).unwrap();
        writer.times(source_of(&times)).unwrap();
        writer.event_ids(no_event_ids).unwrap();
        writer.users(|_, _, _| Ok(())).unwrap();
        writer.user_codes(source_of(&[0; 64])).unwrap();
        let mut values = vec!["a"].into_iter();
        writer
            .text_values("model", |_, out| {
                values.by_ref().for_each(|value| out.push(value.as_bytes()));
                Ok(())
            })
            .unwrap();
        writer.text_codes("model", 1, source_of(&[1; 64])).unwrap();
        writer.numbers("ms", 0, source_of(&[1.0; 64])).unwrap();
        let meta = writer.finish().unwrap();
        let file = vfs.files()[&meta.path()].clone();
        let trailer = read_trailer(&file, "test").unwrap();
        let footer = trailer.footer_offset..trailer.footer_offset + trailer.footer_len;
        let footer = Footer::read(&file[footer], "test").unwrap();
        let open = |file: Vec<u8>, footer: Footer| {
            Segment::assemble(View::new(file), meta.clone(), db, footer).unwrap()
        };
        open(file.clone(), footer.clone()).verify().unwrap();
        for kind in
            [SectionKind::RollupCounts, SectionKind::RollupNumbers, SectionKind::RollupNumbersBy]
        {
            let (mut file, mut footer) = (file.clone(), footer.clone());
            let section = footer.sections.iter_mut().find(|one| one.kind == kind as u16).unwrap();
            let place = section.blocks[0];
            let range = place.offset as usize..place.offset as usize + place.len as usize;
            // The last byte is part of a count or of a number.
            file[range.end - 1] ^= 1;
            section.blocks[0].crc = block_crc(uuid, section.kind, &section.name, 0, &file[range]);
            let error = open(file, footer).verify().unwrap_err().to_string();
            assert!(error.contains("not what its rows add up to"), "{kind:?}: {error}");
        }
        let mut footer = footer;
        footer.sections.retain(|one| one.kind != SectionKind::RollupCounts as u16);
        let mut segment = open(file, footer);
        assert!(segment.verify().is_err(), "one is missing");
        Arc::get_mut(&mut segment.file).unwrap().minor = MINOR + 1;
        segment.verify().unwrap();
    }

    /// What is read back is compared with what was handed in, not only with its own checksum.
    #[test]
    fn a_column_that_changed_on_its_way_is_not_kept() {
        let vfs = SimVfs::new();
        for is_damaged in [false, true] {
            let uuid = uuid::Uuid::from_u128(u128::from(is_damaged));
            let new = NewSegment {
                uuid,
                db: Database { id: [1; 16], hash_seed: 1 },
                level: 0,
                rows: 2,
                rollup_rows_min: 1,
            };
            let mut writer = SegmentWriter::new(&vfs, new).unwrap();
            let key = SeriesKey { namespace: Namespace(1), tenant: "t".into(), name: "e".into() };
            let mut runs = RunDirectory::default();
            runs.push(key, &[5, 6]);
            writer.runs(&runs).unwrap();
            writer.times(source_of(&[5, 6])).unwrap();
            writer.event_ids(no_event_ids).unwrap();
            writer.users(|_, _, _| Ok(())).unwrap();
            writer.user_codes(source_of(&[0, 0])).unwrap();
            writer.numbers("ms", 0, source_of(&[1.0, 2.0])).unwrap();
            if is_damaged {
                let hash = writer.hashes.get_mut(&(SectionKind::Numbers as u16, "ms".to_owned()));
                *hash.unwrap() ^= 1;
            }
            vfs.create_dir("seg/l0").unwrap();
            let done = writer.finish();
            assert_eq!(done.is_err(), is_damaged, "{done:?}");
        }
    }
}
