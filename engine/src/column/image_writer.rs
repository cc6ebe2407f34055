//! Laying out a [`RowImage`](super::RowImage): the rows of one namespace among chunks of rows of many.
//!
//! ```text
//! chunk 0   0: (1, beta, call) 50     1: (2, acme, call) 10     2: (1, acme, login) 20
//! chunk 1   0: (1, acme, login) 20    1: (1, acme, login) 5
//!
//! image of namespace 1   acme login   chunk 1 row 1 (5), chunk 0 row 2 (20), chunk 1 row 0 (20)     equal times: older chunk first
//!                        beta call    chunk 0 row 0 (50)
//! ```
//!
//! Nothing of namespace 2 gets in, not even a string that only its rows have: dictionaries are made of the rows of the image.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    cells::ABSENT,
    image::LENGTH_BYTES,
    rows::{BytesColumn, Rows},
};
use crate::{
    base::{coding::Put, hash::MapHasher, texts::TextTable},
    event::Namespace,
};

/// A chunk, and the position of each of its rows in the image; `ABSENT` for a row of another namespace.
struct Chosen<'a> {
    chunk: &'a Rows,
    places: Vec<u32>,
}

/// A row: its series, time, chunk, and row there. Rows are sorted by all of it.
type SortedRow = (u32, i64, u32, u32);

/// The image of a namespace's rows; `None` when the chunks have none.
pub fn write_image(namespace: Namespace, chunks: &[Arc<Rows>]) -> Option<Vec<u8>> {
    let (keys, ranks) = ranked(namespace, chunks);
    let rows = sorted_rows(chunks, keys.len(), &ranks);
    if rows.is_empty() {
        return None;
    }
    let (mut directory, mut data) = (Vec::new(), Vec::new());
    directory.put_varint(rows.len() as u64);
    write_series(&mut directory, &keys, &rows);
    let chunk_of = |row: &SortedRow| (&*chunks[row.2 as usize], row.3 as usize);
    rows.iter().for_each(|row| data.put_i64(row.1));
    let columns: [fn(&Rows) -> &BytesColumn; 2] = [|rows| &rows.event_ids, |rows| &rows.users];
    for column in columns {
        let mut table = TextTable::default();
        for row in &rows {
            let (chunk, at) = chunk_of(row);
            table.push(column(chunk).value(at).unwrap_or_default());
        }
        directory.put_varint(table.bytes.len() as u64);
        write_texts(&mut data, &table);
    }
    let mut chosen: Vec<Chosen<'_>> = Vec::new();
    for chunk in chunks {
        chosen.push(Chosen { chunk, places: vec![ABSENT; chunk.len()] });
    }
    for (place, row) in (0..).zip(&rows) {
        chosen[row.2 as usize].places[row.3 as usize] = place;
    }
    chosen.retain(|chosen| chosen.places.iter().any(|place| *place != ABSENT));
    write_strings(&mut directory, &mut data, &chosen, rows.len());
    write_numbers(&mut directory, &mut data, &chosen, rows.len());
    let mut image = Vec::with_capacity(LENGTH_BYTES + directory.len() + data.len());
    image.put_u64(directory.len() as u64);
    image.append(&mut directory);
    image.append(&mut data);
    Some(image)
}

/// A series as it is compared: the first bytes of the tenant, the tenant, the event name; with its chunk and code there.
type SeriesRef<'a> = (u128, &'a str, &'a str, u32, u32);

/// Tenants and event names of a namespace's series, rising, and for each chunk which of them its codes stand for; `ABSENT`
/// for a series of another namespace, and nothing for a chunk with series of others alone.
fn ranked(namespace: Namespace, chunks: &[Arc<Rows>]) -> (Vec<(&str, &str)>, Vec<Vec<u32>>) {
    let mut named: Vec<SeriesRef<'_>> = Vec::new();
    let mut ranks: Vec<Vec<u32>> = Vec::with_capacity(chunks.len());
    for (number, chunk) in (0..).zip(chunks) {
        let before = named.len();
        let ours = (0..).zip(&chunk.series).filter(|(_, key)| key.namespace == namespace);
        named.extend(
            ours.map(|(code, key)| (prefix(&key.tenant), &*key.tenant, &*key.name, number, code)),
        );
        let series_count = if named.len() > before { chunk.series.len() } else { 0 };
        ranks.push(vec![ABSENT; series_count]);
    }
    named.sort_unstable();
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for (_, tenant, name, chunk, code) in named {
        if keys.last() != Some(&(tenant, name)) {
            keys.push((tenant, name));
        }
        ranks[chunk as usize][code as usize] = keys.len() as u32 - 1;
    }
    (keys, ranks)
}

/// The first bytes of a text as a number: texts that differ there compare as their numbers do, and names of tenants, which
/// begin alike, mostly end there.
fn prefix(text: &str) -> u128 {
    let mut bytes = [0; size_of::<u128>()];
    bytes.iter_mut().zip(text.bytes()).for_each(|(byte, of_text)| *byte = of_text);
    u128::from_be_bytes(bytes)
}

/// The rows of the chunks' series, of which there are `series_count`, series by series and within one by time. Counted first, so
/// that each row is put where it belongs and only the rows of one series are sorted.
fn sorted_rows(chunks: &[Arc<Rows>], series_count: usize, ranks: &[Vec<u32>]) -> Vec<SortedRow> {
    // Where the next row of each series goes: first how many there are, then where they begin.
    let (mut next, mut row_count) = (vec![0usize; series_count], 0);
    let ours = || (0..).zip(chunks.iter().zip(ranks)).filter(|(_, (_, ranks))| !ranks.is_empty());
    for (_, (chunk, ranks)) in ours() {
        for code in &chunk.series_codes {
            if let Some(count) = next.get_mut(ranks[*code as usize] as usize) {
                *count += 1;
            }
        }
    }
    for next in &mut next {
        row_count += std::mem::replace(next, row_count);
    }
    let mut rows: Vec<SortedRow> = vec![(0, 0, 0, 0); row_count];
    for (number, (chunk, ranks)) in ours() {
        let codes = chunk.series_codes.iter().zip(&chunk.timestamps);
        for (row, (code, ms)) in (0..).zip(codes) {
            let series = ranks[*code as usize];
            if let Some(at) = next.get_mut(series as usize) {
                rows[*at] = (series, *ms, number, row);
                *at += 1;
            }
        }
    }
    // They came in the order of chunks and rows.
    rows.chunk_by_mut(|a, b| a.0 == b.0).for_each(|rows| rows.sort_by_key(|row| row.1));
    rows
}

/// Appends tenants, event names and series to the directory. `rows` are sorted, so a series is a run of them.
fn write_series(directory: &mut Vec<u8>, keys: &[(&str, &str)], rows: &[SortedRow]) {
    let of_series: Vec<&[SortedRow]> = rows.chunk_by(|a, b| a.0 == b.0).collect();
    let key = |rows: &&[SortedRow]| keys[rows[0].0 as usize];
    let mut tenants: Vec<&str> = of_series.iter().map(|rows| key(rows).0).collect();
    tenants.dedup();
    let names: BTreeSet<&str> = of_series.iter().map(|rows| key(rows).1).collect();
    let names: Vec<&str> = names.into_iter().collect();
    for texts in [&tenants, &names] {
        directory.put_varint(texts.len() as u64);
        texts.iter().for_each(|text| directory.put_bytes(text.as_bytes()));
    }
    directory.put_varint(of_series.len() as u64);
    let mut at = 0;
    for rows in of_series {
        let (tenant, name) = key(&rows);
        // Both rise.
        at += usize::from(tenants[at] != tenant);
        directory.put_u32(at as u32);
        directory.put_u32(names.partition_point(|other| *other < name) as u32);
        directory.put_u32(rows.len() as u32);
        directory.put_i64(rows[0].1);
        directory.put_i64(rows[rows.len() - 1].1);
    }
}

/// Appends the string properties: names and lengths to the directory, dictionaries and codes to the data. Each chunk has codes of its
/// own, which become those of one dictionary.
fn write_strings(
    directory: &mut Vec<u8>,
    data: &mut Vec<u8>,
    chosen: &[Chosen<'_>],
    row_count: usize,
) {
    let names: BTreeSet<&Arc<str>> =
        chosen.iter().flat_map(|chosen| chosen.chunk.strings.keys()).collect();
    let (mut count, mut entries) = (0, Vec::new());
    for name in names {
        let mut codes: HashMap<&str, u32, MapHasher> = HashMap::default();
        let (mut dictionary, mut cells) = (TextTable::default(), Vec::new());
        for Chosen { chunk, places } in chosen {
            let Some(column) = chunk.strings.get(name) else { continue };
            // The code here of each of the chunk's values; 0 for one that no row of ours has shown yet.
            let mut known = vec![0u32; column.values.len()];
            for (row, code) in column.codes.iter() {
                let place = places[row as usize];
                if place == ABSENT {
                    continue;
                }
                let known = &mut known[code as usize];
                if *known == 0 {
                    let value = &*column.values[code as usize];
                    *known = *codes.entry(value).or_insert_with(|| {
                        dictionary.push(value.as_bytes());
                        dictionary.len() as u32
                    });
                }
                cells.push((place, *known));
            }
        }
        if cells.is_empty() {
            continue;
        }
        count += 1;
        entries.put_bytes(name.as_bytes());
        entries.put_varint(dictionary.len() as u64);
        entries.put_varint(dictionary.bytes.len() as u64);
        write_texts(data, &dictionary);
        let listed = write_cells(data, cells, row_count, 0, |data, code| data.put_u32(code));
        entries.put_varint(listed as u64);
    }
    directory.put_varint(count);
    directory.append(&mut entries);
}

/// Appends the numeric properties likewise.
fn write_numbers(
    directory: &mut Vec<u8>,
    data: &mut Vec<u8>,
    chosen: &[Chosen<'_>],
    row_count: usize,
) {
    let names: BTreeSet<&Arc<str>> =
        chosen.iter().flat_map(|chosen| chosen.chunk.numbers.keys()).collect();
    let (mut count, mut entries) = (0, Vec::new());
    for name in names {
        let mut cells = Vec::new();
        for Chosen { chunk, places } in chosen {
            let Some(column) = chunk.numbers.get(name) else { continue };
            let placed = column.iter().map(|(row, number)| (places[row as usize], number));
            cells.extend(placed.filter(|(place, _)| *place != ABSENT));
        }
        if cells.is_empty() {
            continue;
        }
        count += 1;
        entries.put_bytes(name.as_bytes());
        let put = |data: &mut Vec<u8>, number: f64| data.put_u64(number.to_bits());
        entries.put_varint(write_cells(data, cells, row_count, f64::NAN, put) as u64);
    }
    directory.put_varint(count);
    directory.append(&mut entries);
}

/// Writes the values of a property; returns how many rows are listed before them, 0 where each row has its value.
fn write_cells<T: Copy>(
    data: &mut Vec<u8>,
    mut cells: Vec<(u32, T)>,
    row_count: usize,
    absent: T,
    put: impl Fn(&mut Vec<u8>, T),
) -> usize {
    // Whichever takes fewer bytes.
    if row_count * size_of::<T>() <= cells.len() * (size_of::<T>() + size_of::<u32>()) {
        let mut dense = vec![absent; row_count];
        cells.into_iter().for_each(|(place, value)| dense[place as usize] = value);
        dense.into_iter().for_each(|value| put(data, value));
        return 0;
    }
    cells.sort_unstable_by_key(|(place, _)| *place);
    cells.iter().for_each(|(place, _)| data.put_u32(*place));
    cells.iter().for_each(|(_, value)| put(data, *value));
    cells.len()
}

/// Appends where each text ends, then their bytes.
fn write_texts(data: &mut Vec<u8>, table: &TextTable) {
    table.ends.iter().for_each(|end| data.put_u32(*end));
    data.extend_from_slice(&table.bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{RowImage, RowsBuilder},
        *,
    };
    use crate::{event::Event, vfs::View};

    /// A row: namespace, tenant, event name, time, string property, rare string property, number.
    type Plain = (u32, usize, usize, i64, Option<usize>, bool, Option<u32>);

    const TENANTS: [&str; 3] = ["acme", "beta", "core"];
    const NAMES: [&str; 2] = ["call", "login"];

    fn chunks(plain: &[Vec<Plain>]) -> Vec<Arc<Rows>> {
        let mut number = 0;
        let chunk = |rows: &Vec<Plain>| {
            let mut builder = RowsBuilder::new(7);
            for &(namespace, tenant, name, ms, plan, is_rare, amount) in rows {
                number += 1;
                let (id, user) = (format!("e{number}"), format!("u{}", number % 5));
                let event = Event {
                    tenant: TENANTS[tenant],
                    name: NAMES[name],
                    timestamp_ms: ms,
                    event_id: (number % 4 > 0).then_some(&id),
                    user_id: (number % 3 > 0).then_some(&user),
                };
                let plan = plan.map(|plan| format!("plan {plan}"));
                let mut strings: Vec<(&str, &str)> =
                    plan.iter().map(|plan| ("plan", &**plan)).collect();
                strings.extend(is_rare.then_some(("rare", "yes")));
                let numbers: Vec<(&str, f64)> =
                    amount.iter().map(|amount| ("amount", f64::from(*amount) / 4.0)).collect();
                builder.push(Namespace(namespace), &event, &strings, &numbers);
            }
            Arc::new(builder.finish())
        };
        plain.iter().map(chunk).collect()
    }

    /// The rows of a namespace as one line each, in the order of the image.
    fn expected(chunks: &[Arc<Rows>], namespace: Namespace) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, chunk) in chunks.iter().enumerate() {
            for row in (0..chunk.len()).filter(|row| chunk.series_of(*row).namespace == namespace) {
                let key = chunk.series_of(row);
                let text = |name: &str| {
                    let column = chunk.strings.get(name)?;
                    column.values.get(column.code(row) as usize).map(|value| value.to_string())
                };
                let amount = chunk.numbers.get("amount").and_then(|cells| cells.get(row));
                let bytes =
                    |value: Option<&[u8]>| String::from_utf8(value.unwrap_or_default().to_vec());
                let line = format!(
                    "{} {} {} {} {:?} {:?} {:?}",
                    chunk.timestamps[row],
                    bytes(chunk.event_ids.value(row)).unwrap(),
                    bytes(chunk.users.value(row)).unwrap(),
                    key.tenant,
                    text("plan"),
                    text("rare"),
                    amount,
                );
                let order = (key.tenant.clone(), key.name.clone(), chunk.timestamps[row]);
                lines.push(((order, number, row), format!("{} {line}", key.name)));
            }
        }
        lines.sort();
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// The same as read from an image, in pieces of at most `step` rows.
    fn read(image: &RowImage, step: u32) -> Vec<String> {
        let mut lines = Vec::new();
        let tables = ["plan", "rare"].map(|name| image.dictionary(name));
        for series in &image.series {
            for start in series.rows.clone().step_by(step as usize) {
                let rows = start..series.rows.end.min(start + step);
                let (mut ids, mut users) = (TextTable::default(), TextTable::default());
                image.read_event_ids(&rows, &mut ids);
                image.read_users(&rows, &mut users);
                let mut codes = [Vec::new(), Vec::new()];
                image.read_codes("plan", &rows, &mut codes[0]).unwrap();
                image.read_codes("rare", &rows, &mut codes[1]).unwrap();
                let mut amounts = Vec::new();
                image.read_numbers("amount", &rows, &mut amounts);
                for (at, ms) in image.times(&rows).enumerate() {
                    assert!((series.first_ms..=series.last_ms).contains(&ms));
                    let text = |column: usize| {
                        let code = codes[column][at].checked_sub(1)?;
                        Some(tables[column].text(code as usize))
                    };
                    lines.push(format!(
                        "{} {ms} {} {} {} {:?} {:?} {:?}",
                        image.names[series.name as usize],
                        ids.text(at),
                        users.text(at),
                        image.tenants.text(series.tenant as usize),
                        text(0),
                        text(1),
                        Some(amounts[at]).filter(|amount| !amount.is_nan()),
                    ));
                }
            }
        }
        lines
    }

    fn plain_row() -> impl Strategy<Value = Plain> {
        let rare = prop::bool::weighted(0.05);
        (
            1u32..3,
            0usize..3,
            0usize..2,
            -50i64..50,
            prop::option::of(0usize..4),
            rare,
            prop::option::of(0u32..9),
        )
    }

    proptest! {
        /// An image shows the rows of its namespace, all of them, in order, and nothing of others.
        #[test]
        fn an_image_has_the_rows_of_its_namespace(
            plain in prop::collection::vec(prop::collection::vec(plain_row(), 1..80), 1..5),
            step in 1u32..40,
        ) {
            let chunks = chunks(&plain);
            for namespace in [Namespace(1), Namespace(2)] {
                let expected = expected(&chunks, namespace);
                let Some(bytes) = write_image(namespace, &chunks) else {
                    prop_assert!(expected.is_empty());
                    continue;
                };
                let image = RowImage::open(View::new(bytes)).unwrap();
                prop_assert_eq!(read(&image, step), expected);
                for series in &image.series {
                    for ms in [-51, 0, 7, 51] {
                        let first = image.first_row_at(&series.rows, ms);
                        let before = image.times(&series.rows).filter(|time| *time < ms).count();
                        prop_assert_eq!(first, series.rows.start + before as u32);
                    }
                }
            }
            prop_assert!(write_image(Namespace(3), &chunks).is_none());
        }

        /// Bytes that are no image are an error or other rows, never a panic.
        #[test]
        fn damage_never_panics(at in 0usize..4_000, bit in 0u8..8, cut in 0usize..4_000) {
            let row = |n: usize| {
                (1, n % 3, n % 2, n as i64, Some(n % 4), n.is_multiple_of(9), Some(n as u32))
            };
            let plain: Vec<Plain> = (0..60).map(row).collect();
            let bytes = write_image(Namespace(1), &chunks(&[plain])).unwrap();
            let mut flipped = bytes.clone();
            let len = flipped.len();
            flipped[at % len] ^= 1 << bit;
            for damaged in [flipped, bytes[..cut % len].to_vec()] {
                let Ok(image) = RowImage::open(View::new(damaged)) else { continue };
                for series in image.series.clone() {
                    let (mut table, mut codes, mut numbers) = (TextTable::default(), Vec::new(), Vec::new());
                    image.read_event_ids(&series.rows, &mut table);
                    image.read_users(&series.rows, &mut table);
                    let _ = image.read_codes("plan", &series.rows, &mut codes);
                    let _ = image.read_codes("rare", &series.rows, &mut codes);
                    image.read_numbers("amount", &series.rows, &mut numbers);
                    image.first_row_at(&series.rows, 5);
                    image.times(&series.rows).for_each(drop);
                    image.dictionary("plan");
                }
            }
        }
    }
}
