//! Merging users: tenant by tenant, sorted, and only those of rows that stay.
//!
//! Codes of an input count among the users of the row's tenant. Here they are counted from the input's
//! first user, so that one table an input says what became of each.
//!
//! ```text
//! A   acme: anne bob   zeta: carl         used all        remap 0 1 2 1
//! B   acme: bob        zeta: anne carl    used 1, 3       remap 0 2 0 1
//! output   acme: anne bob   zeta: carl
//! ```
//!
//! Damage: a row whose code is beyond the users of its tenant would get a user of the next one, so it is refused:
//! `seg/l0/019a….seg: rows from 2 have users that are not of their tenant`.

use super::{
    cursors::{BlockCache, IntCursor},
    dictionary::UsedCodes,
    order::Order,
    plan::Piece,
};
use crate::{
    encode::text::TextList,
    error::{Error, Result},
    segment::{RunDirectory, Segment, USERS_A_BLOCK},
};

/// User codes of one input, with the tenant that the last row was of: rows of one tenant follow each other.
pub struct UserCodes<'a> {
    segment: &'a Segment,
    codes: IntCursor<'a>,
    tenant: usize,
}

impl<'a> UserCodes<'a> {
    /// A reader before the first row.
    pub fn new(segment: &'a Segment) -> Self {
        Self { segment, codes: IntCursor::default(), tenant: 0 }
    }

    /// Calls `visit` with the codes of `piece`, and with the number of users of the tenants before theirs: 2 for rows of zeta in A.
    /// A piece may go across tenants; a call never does.
    ///
    /// Errors: `Corrupt` when a code is beyond the users of its tenant.
    pub fn read(&mut self, piece: Piece, mut visit: impl FnMut(usize, &[i64])) -> Result<()> {
        let (segment, tenants) = (self.segment, self.segment.tenants());
        let (mut start, end) = (piece.start, piece.start + piece.rows);
        while start < end {
            if !tenants.rows(self.tenant).contains(&start) {
                self.tenant = tenants.of_row(start);
            }
            // Up to the end of the tenant's rows, and at least one row: a piece behind the last tenant must end, too.
            let stop = tenants.rows(self.tenant).end.clamp(start + 1, end);
            let base = tenants.users(self.tenant).start;
            let part = Piece { start, rows: stop - start, ..piece };
            let users = 0..=tenants.users(self.tenant).len() as i64;
            // Checked before `visit` sees the codes: it marks them without looking.
            let mut are_his = true;
            self.codes.read(
                part,
                |block| segment.user_codes(block),
                |codes| {
                    are_his = are_his && codes.iter().all(|code| users.contains(code));
                    if are_his {
                        visit(base, codes);
                    }
                },
            )?;
            if !are_his {
                let detail = format!("rows from {start} have users that are not of their tenant");
                return Err(Error::corrupt(segment.meta().path(), detail));
            }
            start = stop;
        }
        Ok(())
    }
}

/// For each input, the users that rows of the output have, counted from the input's first user.
pub fn used(inputs: &[&Segment], order: &Order) -> Result<Vec<UsedCodes>> {
    let counts = inputs.iter().map(|segment| Ok(UsedCodes::none(segment.user_count()?)));
    let mut used = counts.collect::<Result<Vec<_>>>()?;
    let mut codes: Vec<UserCodes<'_>> = inputs.iter().map(|input| UserCodes::new(input)).collect();
    for &span in &order.spans {
        let input = usize::from(span.input);
        codes[input].read(span, |base, codes| {
            let those = codes.iter().filter(|&&code| code != 0);
            those.for_each(|&code| used[input].mark(base as i64 + code));
        })?;
    }
    Ok(used)
}

/// The wanted users of one input, one after the other: those that a row of the output has.
pub struct UserStream<'a, 'c> {
    segment: &'a Segment,
    cache: &'c mut BlockCache<TextList>,
    used: &'c UsedCodes,
    /// Indexes of the input's tenants among the output's.
    places: Vec<u32>,
    /// For each user of the input, from 1 on, its code in the output; 0 while it has none.
    pub remap: Vec<u32>,
    tenant: usize,
    at: usize,
    /// Index in the output of the tenant of the current user, and the id of the user; `None` at the end.
    key: Option<(u32, Vec<u8>)>,
}

impl<'a, 'c> UserStream<'a, 'c> {
    /// A stream at its first user. `runs` are those of the output.
    ///
    /// Errors: `Corrupt` when a block of users is damaged.
    pub fn start(
        segment: &'a Segment,
        cache: &'c mut BlockCache<TextList>,
        used: &'c UsedCodes,
        runs: &RunDirectory,
    ) -> Result<Self> {
        let remap = vec![0; segment.user_count()? + 1];
        let places = places(segment.runs(), runs);
        let mut stream = Self { segment, cache, used, places, remap, tenant: 0, at: 0, key: None };
        stream.seek()?;
        Ok(stream)
    }

    /// Goes to the first wanted user from `at` on; `key` is what the streams are compared by, tenant first.
    fn seek(&mut self) -> Result<()> {
        let count = self.remap.len() - 1;
        while self.at < count && !self.used.contains(self.at + 1) {
            self.at += 1;
        }
        if self.at >= count {
            self.key = None;
            return Ok(());
        }
        // Tenants without users are passed over: their ranges are empty.
        while self.at >= self.segment.tenants().users(self.tenant).end {
            self.tenant += 1;
        }
        let segment = self.segment;
        let open = |index| segment.users(index);
        let block = self.cache.block(self.at / USERS_A_BLOCK, open, TextList::bytes_used)?;
        let (place, text) = self.key.get_or_insert_default();
        *place = self.places[self.tenant];
        text.clear();
        text.extend_from_slice(block.at(self.at % USERS_A_BLOCK));
        Ok(())
    }
}

/// The index of each tenant of an input among those of the output; both are ordered alike. Of a tenant that the output lacks it is
/// that of the next one, or `u32::MAX`: none of its users is used.
fn places(input: &RunDirectory, output: &RunDirectory) -> Vec<u32> {
    let mut wanted = output.tenants().enumerate().peekable();
    let place = |tenant| {
        while wanted.peek().is_some_and(|(_, here)| *here < tenant) {
            wanted.next();
        }
        wanted.peek().map_or(u32::MAX, |(place, _)| *place as u32)
    };
    input.tenants().map(place).collect()
}

/// Gives up to `wanted` more users of the output: for each the index of its tenant, in `tenants`, and its id, in `texts`. `given` is
/// the tenant of the last one and its code there; codes begin at 1 with each tenant.
pub fn next_users(
    streams: &mut [UserStream<'_, '_>],
    wanted: usize,
    given: &mut (u32, u32),
    tenants: &mut Vec<u32>,
    texts: &mut TextList,
) -> Result<()> {
    for _ in 0..wanted {
        let Some((place, text)) = streams.iter().filter_map(|stream| stream.key.as_ref()).min()
        else {
            return Ok(());
        };
        let place = *place;
        *given = if given.0 == place { (place, given.1 + 1) } else { (place, 1) };
        tenants.push(place);
        texts.push(text);
        let text = texts.at(texts.len() - 1);
        // The user of every input that has it gets the same code, so rows of one user stay one user.
        let is_his = |key: &(u32, Vec<u8>)| key.0 == place && key.1 == text;
        for stream in streams.iter_mut().filter(|stream| stream.key.as_ref().is_some_and(is_his)) {
            stream.at += 1;
            stream.remap[stream.at] = given.1;
            stream.seek()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        column::SeriesKey,
        event::Namespace,
        segment::{Database, NewSegment, SegmentWriter, layout, source_of, writer::no_event_ids},
        vfs::{Vfs as _, View, sim::SimVfs},
    };

    /// Damage behind a right checksum: the code is one of the segment's users, but of another tenant.
    #[test]
    fn a_code_beyond_the_users_of_its_tenant_is_damage() {
        let vfs = SimVfs::new();
        vfs.create_dir("seg/l0").unwrap();
        let db = Database { id: [1; 16], hash_seed: 1 };
        let uuid = uuid::Uuid::from_u128(7);
        let new = NewSegment { uuid, db, level: 0, rows: 4, rollup_rows_min: 9 };
        let mut writer = SegmentWriter::new(&vfs, new).unwrap();
        let mut runs = RunDirectory::default();
        for tenant in ["a", "b"] {
            let key =
                SeriesKey { namespace: Namespace(1), tenant: tenant.into(), name: "e".into() };
            runs.push(key, &[1, 2]);
        }
        writer.runs(&runs).unwrap();
        writer.times(source_of(&[1, 2, 1, 2])).unwrap();
        writer.event_ids(no_event_ids).unwrap();
        let mut users = [(0, "anne"), (1, "bob")].into_iter();
        writer
            .users(|_, tenants, texts| {
                users.by_ref().for_each(|(tenant, id)| {
                    tenants.push(tenant);
                    texts.push(id.as_bytes());
                });
                Ok(())
            })
            .unwrap();
        writer.user_codes(source_of(&[1; 4])).unwrap();
        let meta = writer.finish().unwrap();
        let file = vfs.files()[&meta.path()].clone();
        let trailer = layout::read_trailer(&file, "test").unwrap();
        let footer = trailer.footer_offset..trailer.footer_offset + trailer.footer_len;
        let footer = layout::Footer::read(&file[footer], "test").unwrap();
        let open = |file: &[u8], footer: &layout::Footer| {
            Segment::assemble(View::new(file.to_vec()), meta.clone(), db, footer.clone()).unwrap()
        };
        let read = |segment: &Segment| {
            let mut found = Vec::new();
            let all = Piece { input: 0, start: 0, rows: 4 };
            UserCodes::new(segment)
                .read(all, |base, codes| found.extend(codes.iter().map(|code| base as i64 + code)))
                .map(|()| found)
        };
        assert_eq!(read(&open(&file, &footer)).unwrap(), [1, 1, 2, 2]);
        let (mut file, mut footer) = (file, footer);
        let kind = layout::SectionKind::UserCodes as u16;
        let section = footer.sections.iter_mut().find(|one| one.kind == kind).unwrap();
        let place = section.blocks[0];
        let block = place.offset as usize..place.offset as usize + place.len as usize;
        // A constant block: its tag, then the code.
        file[block.start + 1] = 2;
        section.blocks[0].crc = layout::block_crc(uuid, kind, "", 0, &file[block]);
        let damaged = open(&file, &footer);
        assert!(read(&damaged).unwrap_err().to_string().contains("not of their tenant"));
        assert!(damaged.verify().is_err());
    }
}
