//! Merging segments into new ones.
//!
//! `plan` decides from run directories which rows make up which output. For each output the order of
//! its rows is computed once, as spans of the inputs; then one column after the other is streamed
//! through it. In memory are the spans and times of one output, one decoded vector of the column at
//! hand for each input, and a bounded cache where blocks are decoded whole, of one block an input at
//! least.
//!
//! The same code parts units of time, seals them, and takes out what was deleted: a row is left out by the
//! plan (its series) or by the order (its user).
//!
//! Two fresh segments of one series, parted by day:
//!
//! ```text
//! A   Monday 9:10, 9:20, 9:30, Tuesday 0:05        model  large small small large
//! B   Monday 9:15, 9:20                            model  medium small
//!
//! plan     output 1, Monday: A 0..3, B 0..2        output 2, Tuesday: A 3..4
//! order 1  A0 9:10   B0 9:15   A1 9:20   B1 9:20   A2 9:30         (at equal times the older input first)
//! values   large medium small                      of the rows of output 1 alone
//! codes    A 1→1 2→3, B 1→2 2→3                    1 2 3 3 3
//! ```
//!
//! Rows of all outputs and rows that were left out are together those of the inputs, which [`merge`] asserts.

mod plan;

mod cursors;

mod dictionary;
mod order;

mod listed;

mod users;

use std::{collections::BTreeSet, ops::Range, sync::Arc};

pub use plan::{Fate, Split};

use self::{
    cursors::{BlockCache, IntCursor, NumberCursor, Spans},
    dictionary::{UsedCodes, ValueStream, next_values},
    listed::{ListedRow, Places, RareColumns},
    order::{Order, order},
    plan::{Piece, plan},
    users::{UserCodes, UserStream, next_users},
};
use crate::{
    column::SeriesKey,
    encode::{BLOCK_ROWS, VECTOR_ROWS, numbers, text::TextList},
    error::{IoContext, Result},
    index::bitmaps::ROLLUP_DIMENSIONS,
    segment::{
        Database, EventIds, NewSegment, Segment, SegmentMeta, SegmentWriter, TextReader,
        layout::SectionKind, source_of,
    },
    vfs::Vfs,
};

/// Vectors of a numeric column that decide about its exponent, from each input.
const SAMPLE_VECTORS: usize = 4;

/// The disk, limits and decisions of a merge. The callers differ in these:
///
/// ```text
///                            level                 split       fate
/// parting, merging, sealing  merged or sealed      Units(…)    Drop for days that have expired
/// erasing a user             that of the segment   Nothing     WithoutUser(hash) for the series of the tenant
/// erasing a tenant           that of the segment   Nothing     Drop for the series of the tenant
/// ```
pub struct MergeContext<'a> {
    /// Disk on which the outputs are written.
    pub vfs: &'a dyn Vfs,
    /// Database of the inputs and outputs.
    pub db: Database,
    /// Gives the name of each new segment, a UUID of version 7.
    pub uuid: &'a dyn Fn() -> uuid::Uuid,
    /// Level of the outputs.
    pub level: u8,
    /// Which rows may share an output.
    pub split: Split,
    /// Rows of an output, at most; only a single hour of a series may exceed it.
    pub rows_max: u32,
    /// Rows from which on a series of an output has rollups.
    pub rollup_rows_min: u32,
    /// Decides about the rows of a series on a day since 1970. It must not change its mind within one merge: it is asked for
    /// each input apart.
    pub fate: &'a dyn Fn(&SeriesKey, i64) -> Fate,
    /// Called for each block: waits while queries need the machine, fails when the merge must end.
    pub breathe: &'a dyn Fn() -> Result<()>,
}

/// The result of a merge.
#[derive(Debug, Default)]
pub struct Merged {
    /// The new segments, durable under their final names but for their directories.
    pub segments: Vec<SegmentMeta>,
    /// For each input, the rows that were left out, by series and by user: whose event ids the caller forgets after an erasure.
    pub dropped: Vec<Vec<Range<u32>>>,
}

/// Merges `inputs`, oldest first. On failure nothing is left behind but what a start removes.
///
/// Nothing that is live changes: the caller syncs the directories and records the outputs in place of the inputs.
/// Errors: `Corrupt` when an input is damaged, `Io` when the disk refuses, and those of `breathe`.
pub fn merge(context: &MergeContext<'_>, inputs: &[Arc<Segment>]) -> Result<Merged> {
    let mut merged = Merged::default();
    // Outputs that have their names are not named by any record yet: a failed merge takes them back.
    let done = merge_into(context, inputs, &mut merged);
    if done.is_err() {
        for meta in &merged.segments {
            let _ = context.vfs.remove_new(&meta.path());
        }
    }
    done.map(|()| merged)
}

/// Writes one output after the other; those that are done are in `merged` also when a later one fails.
fn merge_into(
    context: &MergeContext<'_>,
    inputs: &[Arc<Segment>],
    merged: &mut Merged,
) -> Result<()> {
    let segments: Vec<&Segment> = inputs.iter().map(|segment| &**segment).collect();
    let plan = plan(&segments, context.split, context.rows_max, context.fate);
    merged.dropped = plan.dropped;
    let mut merger = Merger::new(context, segments);
    for series in &plan.outputs {
        // One output at a time: its order and times are in memory, and gone before the next one is ordered.
        let order = order(&merger.inputs, series)?;
        for piece in &order.dropped {
            merged.dropped[usize::from(piece.input)].push(piece.start..piece.start + piece.rows);
        }
        // An output that lost all of its rows to an erasure is no segment.
        if !order.times.is_empty() {
            merged.segments.push(merger.write(&order)?);
        }
    }
    let rows = |metas: &[SegmentMeta]| metas.iter().map(|meta| u64::from(meta.rows)).sum::<u64>();
    let dropped: usize = merged.dropped.iter().flatten().map(ExactSizeIterator::len).sum();
    let read: u64 = inputs.iter().map(|segment| u64::from(segment.meta().rows)).sum();
    assert_eq!(
        rows(&merged.segments) + dropped as u64,
        read,
        "a merge neither loses nor adds rows"
    );
    Ok(())
}

/// Inputs with their decoded blocks. One for all outputs: the next output often needs the block that the last one
/// ended in.
struct Merger<'a, 'c> {
    context: &'c MergeContext<'c>,
    inputs: Vec<&'a Segment>,
    event_ids: Vec<BlockCache<EventIds>>,
    users: Vec<BlockCache<TextList>>,
    rare_texts: RareColumns<i64>,
    rare_numbers: RareColumns<f64>,
}

impl<'a, 'c> Merger<'a, 'c> {
    fn new(context: &'c MergeContext<'c>, inputs: Vec<&'a Segment>) -> Self {
        let event_ids = BlockCache::for_each(inputs.len());
        let users = BlockCache::for_each(inputs.len());
        let (rare_texts, rare_numbers) = (RareColumns::default(), RareColumns::default());
        Self { context, inputs, event_ids, users, rare_texts, rare_numbers }
    }

    /// Writes one output and returns its record, for the caller to log.
    fn write(&mut self, order: &Order) -> Result<SegmentMeta> {
        let context = self.context;
        let uuid = (context.uuid)();
        let rows = order.times.len() as u32;
        let rollup_rows_min = context.rollup_rows_min;
        let new = NewSegment { uuid, db: context.db, level: context.level, rows, rollup_rows_min };
        let mut writer = SegmentWriter::new(context.vfs, new)?;
        let written = self.write_columns(&mut writer, order).and_then(|()| {
            let directory = writer.directory();
            context.vfs.create_dir(&directory).at(&directory)?;
            writer.finish()
        });
        if written.is_err() {
            let _ = context.vfs.remove(&format!("tmp/{uuid}.seg"));
        }
        written
    }

    /// Columns in the order that the writer asks for: the run directory first.
    fn write_columns(&mut self, writer: &mut SegmentWriter<'_>, order: &Order) -> Result<()> {
        writer.runs(&order.runs)?;
        let mut times = source_of(&order.times);
        writer.times(|rows, out| {
            (self.context.breathe)()?;
            times(rows, out)
        })?;
        self.write_event_ids(writer, order)?;
        self.write_users(writer, order)?;
        let places = Places::of(order, self.inputs.len());
        for name in self.names(SectionKind::TextValues) {
            self.write_text(writer, order, &places, name)?;
        }
        for name in self.names(SectionKind::Numbers) {
            self.write_numbers(writer, order, &places, name)?;
        }
        Ok(())
    }

    /// Names of the columns that any input has, rising.
    fn names(&self, kind: SectionKind) -> BTreeSet<&'a str> {
        self.inputs.iter().flat_map(|segment| segment.names(kind)).collect()
    }

    /// Event ids are decoded by the block: a cached block serves all pieces that come from it.
    fn write_event_ids(&mut self, writer: &mut SegmentWriter<'_>, order: &Order) -> Result<()> {
        let mut spans = Spans::new(&order.spans);
        writer.event_ids(|rows, out| {
            (self.context.breathe)()?;
            spans.next(rows, |piece| {
                let segment = self.inputs[usize::from(piece.input)];
                let cache = &mut self.event_ids[usize::from(piece.input)];
                for (index, range) in by_block(piece) {
                    let size = |ids: &EventIds| ids.bytes_used();
                    out.append(cache.block(index, |index| segment.event_ids(index), size)?, range);
                }
                Ok(())
            })
        })
    }

    /// Users first: those of rows that stay, sorted within their tenant. Writing them says which code each user of each input
    /// gets, and then the codes of the rows follow.
    fn write_users(&mut self, writer: &mut SegmentWriter<'_>, order: &Order) -> Result<()> {
        let context = self.context;
        let used = users::used(&self.inputs, order)?;
        let mut streams: Vec<UserStream<'_, '_>> = Vec::new();
        for ((segment, cache), used) in self.inputs.iter().zip(&mut self.users).zip(&used) {
            streams.push(UserStream::start(segment, cache, used, &order.runs)?);
        }
        let mut given = (0, 0);
        writer.users(|wanted, tenants, texts| {
            (context.breathe)()?;
            next_users(&mut streams, wanted, &mut given, tenants, texts)
        })?;
        let remaps: Vec<Vec<u32>> = streams.into_iter().map(|stream| stream.remap).collect();
        let mut codes: Vec<UserCodes<'_>> =
            self.inputs.iter().map(|segment| UserCodes::new(segment)).collect();
        let mut spans = Spans::new(&order.spans);
        writer.user_codes(|rows, out| {
            (context.breathe)()?;
            spans.next(rows, |piece| {
                let input = usize::from(piece.input);
                codes[input].read(piece, |base, codes| {
                    // Codes of the piece count from 1 within the tenant; `base` is the number of users before it.
                    let remap = remaps[input].get(base..).unwrap_or_default();
                    let code = |&code: &i64| match code {
                        0 => 0,
                        code => remap.get(code as usize).map_or(0, |&code| i64::from(code)),
                    };
                    out.extend(codes.iter().map(code));
                })
            })
        })
    }

    /// A string property in three steps: which codes are used, then the merged dictionary of these, then the codes of
    /// the output. A column of few rows is read once for all outputs, as a list ([`RareColumns`]), unless bitmaps are made of it.
    fn write_text(
        &mut self,
        writer: &mut SegmentWriter<'_>,
        order: &Order,
        places: &Places,
        name: &str,
    ) -> Result<()> {
        let few = if ROLLUP_DIMENSIONS.contains(&name) {
            None
        } else {
            (self.context.breathe)()?;
            self.rare_texts.placed(&self.inputs, places, order.times.len(), name, |segment| {
                let reader = segment.text(name)?;
                Ok(reader.map(|reader| move |block| reader.codes(block)))
            })?
        };
        // `few` is `None` where many rows may have the column, and empty where none of this output has it.
        if few.as_ref().is_some_and(Vec::is_empty) {
            // Every value of the column was in other rows.
            return Ok(());
        }
        // Of a listed column only inputs with such a row are opened: dictionaries of the others stay compressed.
        let is_used = |input: usize| {
            let of_it = |rows: &Vec<ListedRow<i64>>| {
                rows.iter().any(|&(_, other, _)| usize::from(other) == input)
            };
            few.as_ref().is_none_or(of_it)
        };
        let open_text = |(input, segment): (usize, &&'a Segment)| {
            if is_used(input) { segment.text(name) } else { Ok(None) }
        };
        let readers: Vec<Option<TextReader<'_>>> =
            self.inputs.iter().enumerate().map(open_text).collect::<Result<_>>()?;
        let open = |input: usize, block: usize| match &readers[input] {
            Some(reader) => reader.codes(block),
            None => Ok(crate::encode::ints::IntBlock::zeros(BLOCK_ROWS)),
        };
        let count =
            |segment: &Segment| segment.text(name)?.map(|reader| reader.value_count()).transpose();
        let used = match &few {
            None => self.used_codes(order, count, open)?,
            Some(rows) => {
                let used = readers.iter().map(|reader| {
                    let count = reader.as_ref().map(TextReader::value_count).transpose();
                    Ok(count?.map(UsedCodes::none))
                });
                let mut used = used.collect::<Result<Vec<_>>>()?;
                for &(_, input, code) in rows {
                    used[usize::from(input)].iter_mut().for_each(|used| used.mark(code));
                }
                used
            }
        };
        if used.iter().flatten().all(UsedCodes::is_empty) {
            // Every value of the column was in other rows.
            return Ok(());
        }
        // Writing the values fills the tables from old codes to new ones, which the codes need: so values come first.
        let mut caches: Vec<BlockCache<TextList>> = BlockCache::for_each(readers.len());
        let mut streams: Vec<Option<ValueStream<'_, '_>>> = Vec::new();
        for ((reader, cache), used) in readers.iter().zip(&mut caches).zip(&used) {
            streams.push(match (reader, used) {
                (Some(reader), Some(used)) => Some(ValueStream::start(reader, cache, used)?),
                _ => None,
            });
        }
        let mut given = 0;
        let values = writer.text_values(name, |wanted, out| {
            (self.context.breathe)()?;
            next_values(&mut streams, wanted, &mut given, out)
        })?;
        let remaps: Vec<Vec<u32>> = streams
            .into_iter()
            .map(|stream| stream.map_or_else(|| vec![0], |stream| stream.remap))
            .collect();
        let Some(rows) = few else {
            let source = self.remapped(order, &remaps, &open);
            return writer.text_codes(name, values, source);
        };
        let remapped = rows.into_iter().map(|(place, input, code)| {
            let remap = &remaps[usize::from(input)];
            (place, remap.get(code as usize).map_or(0, |&code| i64::from(code)))
        });
        writer.listed_text_codes(name, values, &remapped.collect::<Vec<_>>())
    }

    /// For each input, the codes that rows of the output have; `None` where it lacks the column. First of two passes over the
    /// codes: the dictionary is written between them.
    fn used_codes<'b>(
        &self,
        order: &Order,
        count: impl Fn(&Segment) -> Result<Option<usize>>,
        open: impl Fn(usize, usize) -> Result<crate::encode::ints::IntBlock<'b>>,
    ) -> Result<Vec<Option<UsedCodes>>> {
        let mut used: Vec<Option<UsedCodes>> = Vec::new();
        for segment in &self.inputs {
            used.push(count(segment)?.map(UsedCodes::none));
        }
        let mut cursors: Vec<IntCursor<'_>> =
            self.inputs.iter().map(|_| IntCursor::default()).collect();
        for &span in &order.spans {
            let input = usize::from(span.input);
            if let Some(used) = &mut used[input] {
                cursors[input].read(
                    span,
                    |block| open(input, block),
                    |codes| codes.iter().for_each(|&code| used.mark(code)),
                )?;
            }
        }
        Ok(used)
    }

    /// A source of codes of the output: those of the inputs in the order of the output, each looked up in the table of its input.
    fn remapped<'m, 'b: 'm>(
        &'m self,
        order: &'m Order,
        remaps: &'m [Vec<u32>],
        open: &'m (dyn Fn(usize, usize) -> Result<crate::encode::ints::IntBlock<'b>> + 'm),
    ) -> impl FnMut(usize, &mut Vec<i64>) -> Result<()> + 'm {
        let mut cursors: Vec<IntCursor<'b>> =
            self.inputs.iter().map(|_| IntCursor::default()).collect();
        let mut spans = Spans::new(&order.spans);
        move |rows, out| {
            (self.context.breathe)()?;
            spans.next(rows, |piece| {
                let input = usize::from(piece.input);
                let remap = &remaps[input];
                cursors[input].read(
                    piece,
                    |block| open(input, block),
                    |codes| {
                        let code = |code: &i64| remap.get(*code as usize).copied().unwrap_or(0);
                        out.extend(codes.iter().map(|here| i64::from(code(here))));
                    },
                )
            })
        }
    }

    /// A numeric property, as a list where few rows have it. Rows of an input that lacks the column are absent.
    fn write_numbers(
        &mut self,
        writer: &mut SegmentWriter<'_>,
        order: &Order,
        places: &Places,
        name: &str,
    ) -> Result<()> {
        (self.context.breathe)()?;
        let few =
            self.rare_numbers.placed(&self.inputs, places, order.times.len(), name, |segment| {
                let reader = segment.numbers(name)?;
                Ok(reader.map(|reader| move |block| reader.block(block)))
            })?;
        if let Some(rows) = few {
            if rows.is_empty() {
                // Every number of the column was in other rows.
                return Ok(());
            }
            let rows: Vec<(u32, f64)> =
                rows.into_iter().map(|(place, _, number)| (place, number)).collect();
            let numbers: Vec<f64> = rows.iter().map(|&(_, number)| number).collect();
            let exponent = numbers::choose_exponent_listed(&numbers);
            return writer.listed_numbers(name, exponent, &rows);
        }
        let mut cursors: Vec<Option<NumberCursor<'_>>> = Vec::new();
        for segment in &self.inputs {
            cursors.push(segment.numbers(name)?.map(NumberCursor::new));
        }
        // Without an exponent no row of this output has a number, and the column is left out.
        let Some(exponent) = self.exponent(order, &mut cursors)? else { return Ok(()) };
        let mut spans = Spans::new(&order.spans);
        writer.numbers(name, exponent, |rows, out| {
            (self.context.breathe)()?;
            spans.next(rows, |piece| match &mut cursors[usize::from(piece.input)] {
                Some(cursor) => cursor.read(piece, out),
                None => {
                    out.resize(out.len() + piece.rows as usize, f64::NAN);
                    Ok(())
                }
            })
        })
    }

    /// The exponent for the output's column: the inputs' own where they agree, else what suits a
    /// sample. `None` when no row of the output has a number.
    ///
    /// Inputs with exponents 2 and 2 give 2 without a number being looked at; with 0 and 2 those of a sample decide.
    fn exponent(
        &self,
        order: &Order,
        cursors: &mut [Option<NumberCursor<'_>>],
    ) -> Result<Option<u8>> {
        let mut exponents = BTreeSet::new();
        let mut sample = Vec::new();
        let mut has_any = false;
        // Spans at even distances, so that the sample is of all times and inputs.
        let step = (order.spans.len() / (SAMPLE_VECTORS * self.inputs.len().max(1))).max(1);
        for (at, span) in order.spans.iter().enumerate() {
            if let Some(cursor) = &mut cursors[usize::from(span.input)] {
                exponents.insert(cursor.reader().exponent());
                // Until a number was seen, every span is looked at: the column may be of few rows at the end.
                if at % step == 0 || !has_any {
                    let rows = span.rows.min(VECTOR_ROWS as u32);
                    let known = sample.len();
                    cursor.read(Piece { rows, ..*span }, &mut sample)?;
                    has_any |= sample[known..].iter().any(|value| !value.is_nan());
                    // Absent rows say nothing about the exponent.
                    if sample.len() > 1 << 16 {
                        sample.retain(|value| !value.is_nan());
                        sample.truncate(1 << 16);
                    }
                }
            }
        }
        if !has_any && !self.has_number(order, cursors)? {
            return Ok(None);
        }
        Ok(Some(match exponents.len() {
            1 => exponents.first().copied().unwrap_or_default(),
            _ => numbers::choose_exponent(&sample),
        }))
    }

    /// Whether any row of the output has a number, by reading all of them: the sample may have missed the few that have.
    fn has_number(&self, order: &Order, cursors: &mut [Option<NumberCursor<'_>>]) -> Result<bool> {
        let mut values = Vec::new();
        for span in &order.spans {
            if let Some(cursor) = &mut cursors[usize::from(span.input)] {
                values.clear();
                cursor.read(*span, &mut values)?;
                if values.iter().any(|value| !value.is_nan()) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The blocks that a piece touches, with the rows of each within it: rows 65,530..65,540 are 65,530..65,536 of block 0 and 0..4
/// of block 1.
fn by_block(piece: Piece) -> impl Iterator<Item = (usize, Range<usize>)> {
    let (start, end) = (piece.start as usize, (piece.start + piece.rows) as usize);
    (start / BLOCK_ROWS..end.div_ceil(BLOCK_ROWS)).map(move |index| {
        let base = index * BLOCK_ROWS;
        (index, start.max(base) - base..end.min(base + BLOCK_ROWS) - base)
    })
}
