//! The users of rows of a segment.

use std::{cmp::Ordering, ops::Range, sync::Arc};

use super::Sealed;
use crate::{
    encode::text::TextList,
    error::{Error, Result},
    scan::{
        row_ranges::Morsel,
        values::{TextTable, Values},
        vectors::{block_of, read_ints},
    },
    segment::USERS_A_BLOCK,
};

/// Texts of users by their positions, the first of which is 0.
pub struct UserTexts<'a> {
    of: &'a Sealed,
    /// Blocks that were read, by their positions: rows beside each other have users of a few blocks, in any order.
    blocks: Vec<Option<Arc<TextList>>>,
}

impl UserTexts<'_> {
    /// The text of the user at a position.
    ///
    /// Errors: `Corrupt`.
    pub fn at(&mut self, position: usize) -> Result<&[u8]> {
        let (of, index) = (self.of, position / USERS_A_BLOCK);
        if index >= self.blocks.len() {
            // Positions are below the number of users, which the file has checked.
            self.blocks.resize(index + 1, None);
        }
        let Some(block) = self.blocks.get_mut(index) else { return Ok(&[]) };
        let list = match block {
            Some(list) => list,
            None => block.insert(of.user_block(index)?),
        };
        Ok(list.at(position % USERS_A_BLOCK))
    }
}

impl Sealed {
    /// How many users there are, of all namespaces and tenants.
    ///
    /// Errors: `Corrupt`.
    pub fn user_count(&self) -> Result<usize> {
        self.file.user_count()
    }

    /// Texts of users.
    pub fn user_texts(&self) -> UserTexts<'_> {
        UserTexts { of: self, blocks: Vec::new() }
    }

    /// Places of all users of the tenant that a row belongs to, in the order of their texts.
    pub fn users_of_row(&self, row: u32) -> Range<usize> {
        let tenants = self.file.tenants();
        tenants.users(tenants.of_row(row))
    }

    /// Users of the rows of a morsel: 0 is nobody, n the user with place n - 1.
    ///
    /// Errors: `Corrupt`.
    pub fn users(&self, morsel: &Morsel) -> Result<Vec<u32>> {
        let codes = self.file.user_codes(block_of(morsel).unwrap_or_default())?;
        let tenants = self.file.tenants();
        let mut all: Vec<i64> = Vec::with_capacity(morsel.rows());
        read_ints(&codes, morsel, |here| all.extend_from_slice(here))?;
        let mut rest = &*all;
        let mut places = Vec::with_capacity(all.len());
        // A row range is of one tenant.
        for row_range in &morsel.row_ranges {
            let users = tenants.users(tenants.of_row(row_range.rows.start));
            let (here, behind) = rest.split_at_checked(row_range.rows.len()).unwrap_or((rest, &[]));
            rest = behind;
            let (first, count) = (users.start as u32, users.len() as u64);
            let mut beyond = false;
            places.extend(here.iter().map(|&code| {
                beyond |= code as u64 > count;
                if code == 0 { 0 } else { first.wrapping_add(code as u32) }
            }));
            if beyond {
                let place = self.file.meta().path();
                return Err(Error::corrupt(place, "a row's user is not one of its tenant"));
            }
        }
        Ok(places)
    }

    /// Takes the mark from rows of a morsel that are of none of these users. A tenant's are searched for once a morsel.
    ///
    /// Errors: `Corrupt`.
    pub fn mark_users(&self, morsel: &Morsel, users: &[&[u8]], marks: &mut [bool]) -> Result<()> {
        let tenants = self.file.tenants();
        // The places of each row range's tenant, which has several row ranges one behind the other.
        let mut of_tenants: Vec<(usize, Vec<u32>)> = Vec::new();
        let mut of_strips = Vec::with_capacity(morsel.row_ranges.len());
        for row_range in &morsel.row_ranges {
            let tenant = tenants.of_row(row_range.rows.start);
            if of_tenants.last().is_none_or(|(last, _)| *last != tenant) {
                let mut places = Vec::new();
                for user in users {
                    let found = self.place_of_user(tenants.users(tenant), user)?;
                    places.extend(found.map(|place| place as u32 + 1));
                }
                of_tenants.push((tenant, places));
            }
            of_strips.push(of_tenants.len() - 1);
        }
        if of_tenants.iter().all(|(_, places)| places.is_empty()) {
            marks.fill(false);
            return Ok(());
        }
        let rows = self.users(morsel)?;
        let mut rest = rows.iter().zip(marks);
        for (row_range, at) in morsel.row_ranges.iter().zip(of_strips) {
            let places = of_tenants.get(at).map(|(_, places)| &**places).unwrap_or_default();
            let here = rest.by_ref().take(row_range.rows.len());
            match *places {
                [only] => here.for_each(|(place, mark)| *mark &= *place == only),
                _ => here.for_each(|(place, mark)| *mark &= places.contains(place)),
            }
        }
        Ok(())
    }

    /// The place of a user among those of a tenant, which are sorted.
    fn place_of_user(&self, mut places: Range<usize>, user: &[u8]) -> Result<Option<usize>> {
        let mut texts = self.user_texts();
        while !places.is_empty() {
            let middle = places.start + places.len() / 2;
            match texts.at(middle)?.cmp(user) {
                Ordering::Equal => return Ok(Some(middle)),
                Ordering::Less => places.start = middle + 1,
                Ordering::Greater => places.end = middle,
            }
        }
        Ok(None)
    }

    /// Users of the rows of a morsel as texts. A tenant's stand together, and so do those of tenants beside each other: they are
    /// the dictionary, unless there are more of them than rows.
    pub(super) fn read_users(&self, morsel: &Morsel) -> Result<Values> {
        let mut places = self.users(morsel)?;
        let tenants = self.file.tenants();
        let users_at = |row: Option<u32>| tenants.users(tenants.of_row(row.unwrap_or_default()));
        let first = users_at(morsel.row_ranges.first().map(|row_range| row_range.rows.start)).start;
        let end = users_at(morsel.row_ranges.last().map(|row_range| row_range.rows.end - 1)).end;
        let mut table = TextTable::default();
        if end.saturating_sub(first) > places.len() {
            let mut texts = self.user_texts();
            for &place in &places {
                match (place as usize).checked_sub(1) {
                    Some(place) => table.push(texts.at(place)?),
                    None => table.push(&[]),
                }
            }
            return Ok(Values::Texts(Arc::new(table)));
        }
        table.ends.reserve(end.saturating_sub(first));
        let mut at = first;
        while at < end {
            let list = self.user_block(at / USERS_A_BLOCK)?;
            let from = at % USERS_A_BLOCK;
            let here = (end - at).min(USERS_A_BLOCK - from);
            let (bytes, ends) = list.some(from..from + here);
            if at == first {
                // Neighbours have users of about the same length.
                table.bytes.reserve(bytes.len() / here.max(1) * (end - at) * 9 / 8);
            }
            table.extend(bytes, ends);
            at += here;
        }
        places.iter_mut().for_each(|place| *place = place.saturating_sub(first as u32));
        Ok(Values::Codes(places, Arc::new(table)))
    }

    fn user_block(&self, index: usize) -> Result<Arc<TextList>> {
        if let Some(list) = self.users.lock().get(&index) {
            return Ok(Arc::clone(list));
        }
        // Nobody waits for it: at worst two read the same.
        let list = Arc::new(self.file.users(index)?);
        self.users.lock().insert(index, Arc::clone(&list));
        Ok(list)
    }
}
