//! The users of rows of a segment.

use std::sync::Arc;

use super::Sealed;
use crate::{
    encode::text::TextList,
    error::{Error, Result},
    scan::{
        strips::Unit,
        values::{TextTable, Values},
        vectors::read_ints,
    },
    segment::USERS_A_BLOCK,
};

impl Sealed {
    /// Users of the rows of a unit. A tenant's stand together, and so do those of tenants beside each other: they are
    /// the dictionary, unless there are more of them than rows.
    pub(super) fn read_users(&self, unit: &Unit, block: usize) -> Result<Values> {
        let codes = self.file.user_codes(block)?;
        let tenants = self.file.tenants();
        let users_at = |row: Option<u32>| tenants.users(tenants.of_row(row.unwrap_or_default()));
        let first = users_at(unit.strips.first().map(|strip| strip.rows.start)).start;
        let end = users_at(unit.strips.last().map(|strip| strip.rows.end - 1)).end;
        let rows = unit.rows();
        let is_dense = end.saturating_sub(first) <= rows;
        let (mut table, mut places) = (TextTable::default(), Vec::new());
        if is_dense {
            places.reserve(rows);
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
        }
        let mut all: Vec<i64> = Vec::with_capacity(rows);
        read_ints(&codes, unit, |here| all.extend_from_slice(here))?;
        let mut rest = &*all;
        // Users of rows beside each other are often of one block.
        let mut last: Option<(usize, Arc<TextList>)> = None;
        // A strip is of one tenant.
        for strip in &unit.strips {
            let users = users_at(Some(strip.rows.start));
            let (here, behind) = rest.split_at_checked(strip.rows.len()).unwrap_or((rest, &[]));
            rest = behind;
            for &code in here {
                let at = usize::try_from(code).unwrap_or(usize::MAX);
                // Zero is nobody.
                let user = at.checked_sub(1).map(|at| users.start.saturating_add(at));
                if user.is_some_and(|user| user >= users.end) {
                    let place = self.file.meta().path();
                    return Err(Error::corrupt(place, "a row's user is not one of its tenant"));
                }
                match user {
                    _ if is_dense => places.push(user.map_or(0, |user| (user - first + 1) as u32)),
                    None => table.push(&[]),
                    Some(user) => {
                        let index = user / USERS_A_BLOCK;
                        let list = match &last {
                            Some((known, list)) if *known == index => list,
                            _ => &last.insert((index, self.user_block(index)?)).1,
                        };
                        table.push(list.at(user % USERS_A_BLOCK));
                    }
                }
            }
        }
        let table = Arc::new(table);
        Ok(if is_dense { Values::Codes(places, table) } else { Values::Texts(table) })
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
