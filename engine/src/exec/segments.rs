//! Filters and reads the rows of segments for a metric query.
//!
//! The plan says which runs are read. Zones drop blocks, bitmaps of rare values are intersected and drop rows, and the
//! remaining rows are read and filtered a vector at a time.

use std::{ops::Range, sync::Arc};

use roaring::RoaringBitmap;

use super::{
    budget::Charge,
    groups::{CodeGroups, NO_GROUP},
    partial_states::State,
    plan::{DayPlan, Plan, Step, StepSource},
    query_cache::{Part, QueryCache},
    rollups::{Codes, GroupCodes, Shape, Target},
    scan_stats::{ScanStats, Served},
    shape_reader::ShapeReader,
    sink::{Scratch, Sink, Users},
};
use crate::{
    encode::{BLOCK_ROWS, VECTOR_ROWS, ints::IntBlock, numbers::NumberBlock},
    error::{Error, Limit, Result},
    query::{Metric, NumberFilter, Query},
    segment::{Dictionary, NumberReader, RollupForm, Run, Segment, TextReader, UserReader},
};

/// A segment with its rollups and columns as a query reads them, for several parts of it.
pub struct OpenSegment<'a> {
    segment: &'a Segment,
    plan: Plan<'a>,
    rollups: Option<ShapeReader<'a>>,
    columns: Option<SegmentColumns<'a>>,
}

impl<'a> OpenSegment<'a> {
    /// A segment of which nothing was read; its columns are opened when they are needed.
    ///
    /// Errors: `Corrupt` when its rollups cannot be opened.
    pub fn new(segment: &'a Segment, plan: Plan<'a>) -> Result<Self> {
        Ok(Self { segment, plan, rollups: plan.rollups(segment)?, columns: None })
    }

    /// Forgets what belongs to the sink of the parts before: the next one is added to another. Users and large
    /// dictionaries were charged to it, and are dropped.
    pub fn forget_sink(&mut self) {
        let Some(columns) = &mut self.columns else { return };
        columns.users = None;
        match &mut columns.group {
            Some(group) if group.values.len() > SHARED_VALUES => self.columns = None,
            Some(group) => group.translate.clear(),
            None => {}
        }
    }

    /// Adds a part that is in one bucket from its rollup. Returns whether it has one that needs nothing else.
    ///
    /// Errors: `Corrupt`, and `Limit` when there is no memory for the states.
    pub fn add_day(
        &mut self,
        (part, bucket): (&Part, usize),
        plan: &Plan<'_>,
        sink: &mut Sink,
        reads: &mut ScanStats,
    ) -> Result<bool> {
        let only_counts = plan.is_sole_day(bucket);
        let has_sets = matches!(plan.shape, Some(Shape::UserSets | Shape::UserSetsBy(_)));
        let Some(rollups) = self.rollups.as_mut().filter(|_| only_counts || !has_sets) else {
            return Ok(false);
        };
        let Some(at) = plan.day_rollup(rollups, part) else { return Ok(false) };
        let (columns, charge) = (&mut self.columns, sink.charge());
        let columns = SegmentColumns::opened(columns, self.segment, &self.plan, charge)?;
        let is_added = match columns.codes() {
            Some(mut codes) => {
                let to = &mut Target { bucket, codes: &mut codes, sink, users: None };
                rollups.add_day(at, only_counts, to)?
            }
            // Without codes no row of the segment can match.
            None => rollups.form(at)? != RollupForm::Nothing,
        };
        reads.served.days |= is_added;
        Ok(is_added)
    }

    /// Adds the matching rows of a part, from rollups where there are any; `whole` is the bucket that holds all
    /// of its rows, if one does. `plan` may have another window than the one that the segment was opened for. `reads`
    /// counts what was looked at.
    ///
    /// Errors: `Corrupt`, and `Limit` when there is no memory for the states or no time.
    pub fn scan(
        &mut self,
        (part, whole): (&Part, Option<usize>),
        plan: &Plan<'_>,
        sink: &mut Sink,
        reads: &mut ScanStats,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        if let Some(bucket) = whole
            && self.add_day((part, bucket), plan, sink, reads)?
        {
            return Ok(());
        }
        let (segment, kept, rollups) = (self.segment, plan.kept, &mut self.rollups);
        for position in part.runs.0 as usize..part.runs.1 as usize {
            let day = plan.of_day(segment, rollups.as_mut(), (part, whole), position)?;
            let Some(day) = day else { continue };
            check()?;
            if plan.shape == Some(&Shape::Rows) {
                for step in &day.steps {
                    let group = sink.groups.number(None);
                    sink.add_state(group, step.bucket, State::Count(step.rows.len() as u64))?;
                    reads.add(&ScanStats::COUNTED);
                }
                continue;
            }
            let (columns, charge) = (&mut self.columns, sink.charge());
            let columns = SegmentColumns::opened(columns, segment, &self.plan, charge)?;
            if let Some(rollups) = rollups {
                columns.serve(&day, rollups, plan, sink, &mut reads.served)?;
            }
            let base = day.run.first_row as usize;
            for step in day.steps.iter().filter(|step| step.source == StepSource::Rows) {
                columns.enter(day.run, kept, sink)?;
                reads.rows += step.rows.len() as u64;
                let rows = base + step.rows.start as usize..base + step.rows.end as usize;
                columns.scan_rows(rows, step.bucket, sink, check)?;
            }
        }
        Ok(())
    }
}

/// Values of a dictionary that an attempt may load.
const ATTEMPT_VALUES: usize = 16_384;
/// Values of a dictionary that stays open for another sink.
const SHARED_VALUES: usize = 1_024;
/// Vectors that are read between two checks: some hundred microseconds.
const VECTORS_PER_CHECK: usize = 8;

/// The columns of a segment that a query reads.
struct SegmentColumns<'a> {
    segment: &'a Segment,
    query: &'a Query,
    texts: Vec<Option<TextTest<'a>>>,
    ranges: Vec<Option<(NumberReader<'a>, &'a NumberFilter)>>,
    group: Option<GroupColumn<'a>>,
    /// `None` when no rollup of the segment can match.
    shape_codes: Option<ShapeCodes>,
    number: Option<Option<NumberReader<'a>>>,
    /// The tenant whose rows are read, and his users, where they are counted.
    users: Option<(usize, Users)>,
    user_reader: UserReader,
    opened: Option<Opened<'a>>,
}

struct TextTest<'a> {
    reader: TextReader<'a>,
    /// Accepted codes, rising.
    codes: Vec<u32>,
}

/// The dimensions of the shape that answers the query, as far as the segment's codes go.
struct ShapeCodes {
    /// By dimension: the accepted codes, rising; all when there is no filter.
    accepted: Vec<Option<Vec<u32>>>,
    /// Index of the dimension that is grouped by.
    group_at: Option<usize>,
}

struct GroupColumn<'a> {
    reader: Option<TextReader<'a>>,
    values: Arc<Dictionary>,
    translate: CodeGroups,
}

/// The blocks of the columns at one place.
struct Opened<'a> {
    index: usize,
    /// Rows of the block that pass all filters by values that are rare enough for a bitmap; `None` without one.
    hits: Option<RoaringBitmap>,
    /// The codes of the other filters, and which of them they are.
    texts: Vec<(usize, IntBlock<'a>)>,
    ranges: Vec<NumberBlock<'a>>,
    group: Option<IntBlock<'a>>,
    number: Option<NumberBlock<'a>>,
    users: Option<IntBlock<'a>>,
}

impl ShapeCodes {
    /// `None` when a filter is about a column that the segment does not have.
    fn of(shape: &Shape, query: &Query, texts: &[Option<TextTest<'_>>]) -> Option<Self> {
        let dimensions = shape.dimensions();
        let index_of = |name: &str| dimensions.iter().position(|dimension| *dimension == name);
        let mut accepted: Vec<Option<Vec<u32>>> = vec![None; dimensions.len()];
        for (test, filter) in texts.iter().zip(&query.texts) {
            *accepted.get_mut(index_of(&filter.name)?)? = Some(test.as_ref()?.codes.clone());
        }
        let group_at = match &query.group_by {
            Some(name) => Some(index_of(name)?),
            None => None,
        };
        Some(Self { accepted, group_at })
    }
}

impl<'a> SegmentColumns<'a> {
    /// The columns in `columns`, opened if they are not yet.
    fn opened<'o>(
        columns: &'o mut Option<Self>,
        segment: &'a Segment,
        plan: &Plan<'a>,
        charge: &mut Charge,
    ) -> Result<&'o mut Self> {
        Ok(match columns {
            Some(columns) => columns,
            empty => empty.insert(Self::open(segment, plan, charge)?),
        })
    }

    fn open(segment: &'a Segment, plan: &Plan<'a>, charge: &mut Charge) -> Result<Self> {
        let Plan { query, kept, is_attempt, .. } = *plan;
        let mut texts = Vec::new();
        for filter in &query.texts {
            let test = match segment.text(&filter.name)? {
                None => None,
                Some(reader) => {
                    let mut codes = Vec::new();
                    for value in &filter.any_of {
                        codes.extend(kept.code_of(&reader, value, charge)?);
                    }
                    codes.sort_unstable();
                    codes.dedup();
                    Some(TextTest { reader, codes })
                }
            };
            texts.push(test);
        }
        let mut ranges = Vec::new();
        for filter in &query.numbers {
            ranges.push(segment.numbers(&filter.name)?.map(|reader| (reader, filter)));
        }
        let group = match &query.group_by {
            None => None,
            Some(name) => {
                let reader = segment.text(name)?;
                let values = match &reader {
                    None => Arc::default(),
                    Some(reader) if is_attempt && reader.value_count()? > ATTEMPT_VALUES => {
                        return Err(Error::limit(Limit::QueryTime, "the query is no short one"));
                    }
                    Some(reader) => kept.dictionary(reader, charge)?,
                };
                charge.add((values.len() + 1) * size_of::<u32>())?;
                let translate = CodeGroups::new(values.len() + 1);
                Some(GroupColumn { reader, values, translate })
            }
        };
        let number = match query.number.as_deref().filter(|_| query.metric.needs_number()) {
            None => None,
            Some(name) => Some(segment.numbers(name)?),
        };
        let user_reader = UserReader::default();
        let shape_codes = plan.shape.and_then(|shape| ShapeCodes::of(shape, query, &texts));
        let (users, opened) = (None, None);
        Ok(Self {
            segment,
            query,
            texts,
            ranges,
            group,
            shape_codes,
            number,
            users,
            user_reader,
            opened,
        })
    }

    /// Turns to the rows of a run.
    fn enter(&mut self, run: &Run, kept: &QueryCache, sink: &mut Sink) -> Result<()> {
        if matches!(self.query.metric, Metric::Distinct | Metric::DistinctApprox) {
            let tenant = self.segment.tenants().of_row(run.first_row);
            if self.users.as_ref().is_none_or(|(other, _)| *other != tenant) {
                let users = sink.users(kept, self.segment, tenant, &mut self.user_reader)?;
                self.users = Some((tenant, users));
            }
        }
        Ok(())
    }

    /// Adds what the rollup of a day answers for.
    fn serve(
        &mut self,
        day: &DayPlan<'_>,
        rollups: &mut ShapeReader<'_>,
        plan: &Plan<'_>,
        sink: &mut Sink,
        served: &mut Served,
    ) -> Result<()> {
        let Some((at, shape)) = day.rollup.zip(plan.shape) else { return Ok(()) };
        let segment = self.segment;
        let has_sets = matches!(shape, Shape::UserSets | Shape::UserSetsBy(_));
        let counts_users = |step: &Step| has_sets && plan.is_sole_day(step.bucket);
        if has_sets && !day.steps.iter().all(counts_users) {
            self.enter(day.run, plan.kept, sink)?;
        }
        let users = self.users.as_ref().filter(|_| has_sets).map(|(_, users)| users.clone());
        let mut codes = self.codes();
        let mut by_hour = None;
        for step @ Step { bucket, source, .. } in &day.steps {
            served.days |= *source == StepSource::Day;
            served.hours |= matches!(source, StepSource::Hours(_));
            // Without codes no row of the segment can match.
            let Some(codes) = &mut codes else { continue };
            let users = users.as_ref().map(|users| (users, segment));
            let to = &mut Target { bucket: *bucket, codes, sink, users };
            match source {
                StepSource::Day => {
                    rollups.add_day(at, counts_users(step), to)?;
                }
                StepSource::Hours(hours) => {
                    let by_hour = match &by_hour {
                        Some(by_hour) => by_hour,
                        None => by_hour.insert(rollups.hours(at, day.day.hours.len())?),
                    };
                    by_hour.add(hours.clone(), to)?;
                }
                StepSource::Directory | StepSource::Rows => {}
            }
        }
        Ok(())
    }

    /// The codes by which rollups are read; `None` when no row of the segment can match.
    fn codes(&mut self) -> Option<Codes<'_>> {
        let ShapeCodes { accepted, group_at } = self.shape_codes.as_ref()?;
        let group = match (group_at, &mut self.group) {
            (Some(at), Some(GroupColumn { values, translate, .. })) => {
                Some(GroupCodes { at: *at, values, translate })
            }
            _ => None,
        };
        Some(Codes { accepted, group })
    }

    /// Whether none of so many rows of a block can match, by the columns and values that there are and by zones.
    fn is_excluded(&self, block: usize, rows: usize) -> bool {
        if rows <= VECTOR_ROWS {
            // They are read in less time than zones of all blocks are.
            let is_absent = |test: &Option<TextTest<'_>>| {
                test.as_ref().is_none_or(|test| test.codes.is_empty())
            };
            return self.texts.iter().any(is_absent)
                || self.ranges.iter().any(Option::is_none)
                || matches!(self.number, Some(None));
        }
        let text = |test: &Option<TextTest<'_>>| match test {
            None => true,
            Some(test) => test
                .reader
                .zone(block)
                .is_some_and(|zone| !test.codes.iter().any(|&code| zone.may_contain(code))),
        };
        let range = |test: &Option<(NumberReader<'_>, &NumberFilter)>| match test {
            None => true,
            Some((reader, filter)) => reader
                .zone(block)
                .is_some_and(|zone| zone.max < filter.min || zone.min > filter.max),
        };
        let number = match &self.number {
            None => false,
            Some(None) => true,
            Some(Some(reader)) => reader
                .zone(block)
                .is_some_and(|zone| zone.absent as usize == self.segment.block_rows(block)),
        };
        self.texts.iter().any(text) || self.ranges.iter().any(range) || number
    }

    fn scan_rows(
        &mut self,
        rows: Range<usize>,
        bucket: usize,
        sink: &mut Sink,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut start = rows.start;
        while start < rows.end {
            let block = start / BLOCK_ROWS;
            let block_end = ((block + 1) * BLOCK_ROWS).min(rows.end);
            check()?;
            if !self.is_excluded(block, block_end - start) {
                self.open_block(block)?;
                if let Some(count) =
                    self.count_of_hits(start % BLOCK_ROWS..block_end - block * BLOCK_ROWS)
                {
                    let group = sink.groups.number(None);
                    if count > 0 && group != NO_GROUP {
                        sink.add_state(group, bucket, State::Count(count))?;
                    }
                    start = block_end;
                }
                while start < block_end {
                    if (start / VECTOR_ROWS).is_multiple_of(VECTORS_PER_CHECK) {
                        check()?;
                    }
                    let end = ((start / VECTOR_ROWS + 1) * VECTOR_ROWS).min(block_end);
                    self.scan_vector(start..end, bucket, sink)?;
                    start = end;
                }
            }
            start = block_end;
        }
        Ok(())
    }

    fn open_block(&mut self, index: usize) -> Result<()> {
        if self.opened.as_ref().is_some_and(|opened| opened.index == index) {
            return Ok(());
        }
        let mut opened = Opened {
            index,
            hits: None,
            texts: Vec::new(),
            ranges: Vec::new(),
            group: None,
            number: None,
            users: None,
        };
        for (at, test) in self.texts.iter().flatten().enumerate() {
            let bitmaps = match test.codes[..] {
                [_] => test.reader.bitmaps(index)?,
                _ => None,
            };
            match bitmaps.and_then(|bitmaps| bitmaps.into_rows(test.codes[0])) {
                None => opened.texts.push((at, test.reader.codes(index)?)),
                Some(rows) => {
                    opened.hits = Some(match opened.hits.take() {
                        None => rows,
                        Some(others) => others & rows,
                    });
                }
            }
        }
        for (reader, _) in self.ranges.iter().flatten() {
            opened.ranges.push(reader.block(index)?);
        }
        if let Some(GroupColumn { reader: Some(reader), .. }) = &self.group {
            opened.group = Some(reader.codes(index)?);
        }
        if let Some(Some(reader)) = &self.number {
            opened.number = Some(reader.block(index)?);
        }
        if self.users.is_some() {
            opened.users = Some(self.segment.user_codes(index)?);
        }
        self.opened = Some(opened);
        Ok(())
    }

    /// The one code that rows are only counted by, if that is so.
    fn only_code(&self) -> Option<u32> {
        let is_counted = self.query.metric == Metric::Count && self.group.is_none();
        let has_hits = self.opened.as_ref().is_some_and(|opened| opened.hits.is_some());
        match &self.texts[..] {
            [Some(TextTest { codes, .. })] if is_counted && self.ranges.is_empty() && !has_hits => {
                codes.first().copied().filter(|_| codes.len() == 1)
            }
            _ => None,
        }
    }

    /// How many rows of a range of the block match, where bitmaps alone say so.
    fn count_of_hits(&self, rows: Range<usize>) -> Option<u64> {
        let opened = self.opened.as_ref()?;
        let is_counted = self.query.metric == Metric::Count && self.group.is_none();
        let is_sure = opened.texts.is_empty() && self.ranges.is_empty() && is_counted;
        let hits = opened.hits.as_ref().filter(|_| is_sure)?;
        Some(hits.range_cardinality(rows.start as u32..rows.end as u32))
    }

    /// Adds the matching rows of one vector.
    fn scan_vector(&mut self, rows: Range<usize>, bucket: usize, sink: &mut Sink) -> Result<()> {
        let only_code = self.only_code();
        let Some(opened) = &self.opened else { return Ok(()) };
        let start = rows.start % BLOCK_ROWS;
        let count = rows.len();
        let Sink { groups, scratch, .. } = sink;
        let Scratch { kept, codes, numbers, users, groups: assigned, passed_users } =
            scratch.buffers();
        let (codes, _) = codes.split_at_mut(count);
        if let (Some(code), [(_, block)]) = (only_code, &opened.texts[..]) {
            block.read_rows(start, codes)?;
            let hits = codes.iter().filter(|&&each| each == i64::from(code)).count();
            return match groups.number(None) {
                NO_GROUP => Ok(()),
                _ if hits == 0 => Ok(()),
                group => sink.add_state(group, bucket, State::Count(hits as u64)),
            };
        }
        let mut kept = KeptRows { rows: kept, len: count, all: true };
        if let Some(hits) = &opened.hits {
            kept.pick(
                hits.range(start as u32..(start + count) as u32).map(|row| row as usize - start),
            );
            if kept.len == 0 {
                return Ok(());
            }
        }
        for (at, block) in &opened.texts {
            let Some(test) = self.texts.iter().flatten().nth(*at) else { continue };
            block.read_rows(start, codes)?;
            match test.codes[..] {
                [code] if kept.all => kept.pick_equal(codes, i64::from(code)),
                [code] => kept.retain(|row| codes[row] == i64::from(code)),
                _ => kept.retain(|row| test.codes.binary_search(&(codes[row] as u32)).is_ok()),
            }
            if kept.len == 0 {
                return Ok(());
            }
        }
        for ((_, filter), block) in self.ranges.iter().flatten().zip(&opened.ranges) {
            block.read_rows(start, &mut numbers[..count])?;
            kept.retain(|row| (filter.min..=filter.max).contains(&numbers[row]));
        }
        if let Some(block) = &opened.number {
            block.read_rows(start, &mut numbers[..count])?;
            // All of them are looked at, which takes a fraction of stopping at the first: it needs no branch a value.
            let any_absent =
                numbers[..count].iter().fold(false, |any, number| any | number.is_nan());
            if any_absent {
                kept.retain(|row| !numbers[row].is_nan());
            }
        }
        if let Some(block) = &opened.users {
            block.read_rows(start, &mut users[..count])?;
            if users[..count].contains(&0) {
                kept.retain(|row| users[row] != 0);
            }
        }
        if kept.len == 0 {
            return Ok(());
        }
        let group = match (&mut self.group, &opened.group) {
            (Some(column), Some(block)) => {
                block.read_rows(start, codes)?;
                assigned.clear();
                let name = |code: usize| column.values.value(code);
                let of_kept = kept.rows().map(|row| codes[row] as usize);
                column.translate.translate(of_kept, groups, name, assigned);
                if assigned.contains(&NO_GROUP) {
                    let mut each = assigned.iter();
                    kept.retain(|_| each.next().is_some_and(|&group| group != NO_GROUP));
                    assigned.retain(|&group| group != NO_GROUP);
                }
                None
            }
            _ => match groups.number(None) {
                NO_GROUP => return Ok(()),
                group => Some(group),
            },
        };
        if self.number.is_some() && !kept.all {
            // Rows rise, so that each moves to a place that was read.
            for to in 0..kept.len {
                numbers[to] = numbers[usize::from(kept.rows[to])];
            }
        }
        match &self.users {
            None => {}
            Some((_, Users::Hashes(known))) => {
                look_up(self.segment, &kept, users, known, &mut passed_users.hashes)?;
            }
            Some((_, Users::Numbers(known, count))) => {
                look_up(self.segment, &kept, users, known, &mut passed_users.numbers)?;
                passed_users.count = *count;
            }
        }
        let count = kept.len;
        sink.add_kept(bucket, count, group)
    }
}

/// What is known of the users of rows, by their codes less one.
fn look_up<T: Copy + Default>(
    segment: &Segment,
    kept: &KeptRows<'_>,
    codes: &[i64; VECTOR_ROWS],
    known: &[T],
    out: &mut Vec<T>,
) -> Result<()> {
    let mut are_known = true;
    let mut of = |code: i64| {
        let found = known.get((code as usize).wrapping_sub(1)).copied();
        are_known &= found.is_some();
        found.unwrap_or_default()
    };
    out.clear();
    if kept.all {
        out.extend(codes[..kept.len].iter().map(|&code| of(code)));
    } else {
        out.extend(kept.rows[..kept.len].iter().map(|&row| of(codes[usize::from(row)])));
    }
    if are_known {
        return Ok(());
    }
    Err(Error::corrupt(segment.meta().path(), "a row's user is not one of its tenant"))
}

/// Rows of a vector that passed so far, rising.
struct KeptRows<'a> {
    rows: &'a mut [u16; VECTOR_ROWS],
    len: usize,
    /// Whether they are all rows, which are not listed then.
    all: bool,
}

impl KeptRows<'_> {
    /// Keeps these rows alone, which rise.
    fn pick(&mut self, rows: impl Iterator<Item = usize>) {
        let before = self.len;
        self.len = 0;
        for (slot, row) in self.rows.iter_mut().zip(rows) {
            *slot = row as u16;
            self.len += 1;
        }
        self.all = self.len == before;
    }

    /// Of all rows, keeps those of a code.
    fn pick_equal(&mut self, codes: &[i64], code: i64) {
        let mut to = 0;
        for (row, &each) in codes.iter().enumerate() {
            // Never behind the end: as many are written as are read.
            self.rows[to % VECTOR_ROWS] = row as u16;
            to += usize::from(each == code);
        }
        self.all = to == self.len;
        self.len = to;
    }

    /// Keeps the rows that pass.
    fn retain(&mut self, mut passes: impl FnMut(usize) -> bool) {
        let mut to = 0;
        for at in 0..self.len {
            let row = if self.all { at as u16 } else { self.rows[at] };
            // Written in any case: a branch would be guessed wrong every other time.
            self.rows[to] = row;
            to += usize::from(passes(usize::from(row)));
        }
        self.all &= to == self.len;
        self.len = to;
    }

    fn rows(&self) -> impl Iterator<Item = usize> + Clone {
        let listed = |at: usize| if self.all { at } else { usize::from(self.rows[at]) };
        (0..self.len).map(listed)
    }
}
