//! What functions of rows around a row come to, for all rows at once.
//!
//! `lag(x)` is `x` of another row, `rank()` is known of where rows are alike, and `sum(x) OVER (… ORDER BY t)` goes on from the row before.
//!
//! Of one partition, `OVER (ORDER BY n)`:
//!
//! ```text
//! n                    10      20      20      35
//! row_number()         1       2       3       4
//! rank()               1       2       2       4        rows before those that are alike, plus 1
//! dense_rank()         1       2       2       3        groups of rows that are alike
//! percent_rank()       0       0.333   0.333   1        rows before, of 3 others
//! cume_dist()          0.25    0.75    0.75    1        rows up to the last that is alike, of 4
//! ntile(3)             1       1       2       3        two rows, one, one
//! lag(n, 1, 0)         0       10      20      20
//! nth_value(n, 2)      NULL    20      20      20       within the frame up to the current row and its peers
//! ```

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{
        Array as _, ArrayRef, BooleanArray, Float64Array, Int64Array, UInt32Array, UInt64Array,
    },
    compute::{concat, take},
    datatypes::{DataType, Field},
};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::WindowFunctionDefinition;
use datafusion_physical_expr::{PhysicalExpr, expressions::Literal};

use super::{
    aggregates::{Counts, counted, extremes, sums},
    frames::{Layout, WindowBounds},
};

/// A function of rows around a row, of those that are computed for all rows at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `row_number()`: the position in the partition, from 1.
    RowNumber,
    /// `rank()`: the position of the first row that is like this one, from 1.
    Rank,
    /// `dense_rank()`: which group of rows that are alike it is, from 1.
    DenseRank,
    /// `percent_rank()`: the share of the other rows that come before, 0 to 1; 0 for a row that is alone.
    PercentRank,
    /// `cume_dist()`: the share of the rows up to the last that is like this one, above 0 to 1.
    CumeDist,
    /// Which of so many parts of about the same size a row is in, from 1.
    Ntile(u64),
    /// The value so many rows further on, and what there is instead: -2 of `lag(x, 2)`, 1 of `lead(x)`.
    Shifted(i64, ScalarValue),
    /// `first_value(x)`: of the first row of the frame, null where the frame has none.
    First,
    /// `last_value(x)`: of the last row of the frame.
    Last,
    /// The value of the row of this number in the frame, counted from one: `nth_value(x, 2)`.
    Nth(usize),
    /// `count(x)`: rows of the frame that have a value and meet the filter.
    Count,
    /// `sum(x)`, of integers that wrap, or of doubles; null where no row is counted.
    Sum,
    /// `avg(x)` of doubles.
    Average,
    /// `min(x)` of any type that has an order.
    Least,
    /// `max(x)` of any type that has an order.
    Most,
}

impl Kind {
    /// Of a function's name and arguments. Nothing for one that is not known here, or takes its arguments from rows: `ntile(n)` and
    /// `lag(x, n)` of a column `n`, `ntile(0)`, `nth_value(x, 0)`, `stddev(x)`.
    pub fn of(function: &WindowFunctionDefinition, args: &[Arc<dyn PhysicalExpr>]) -> Option<Self> {
        let literal = |at: usize| args.get(at)?.downcast_ref::<Literal>().map(Literal::value);
        let whole = |at: usize| match literal(at)? {
            ScalarValue::Int64(Some(value)) => Some(*value),
            ScalarValue::UInt64(Some(value)) => i64::try_from(*value).ok(),
            _ => None,
        };
        let shifted = |sign: i64| {
            let rows = if args.len() > 1 { whole(1)? } else { 1 };
            let instead = if args.len() > 2 { literal(2)?.clone() } else { ScalarValue::Null };
            Some(Self::Shifted(rows.checked_mul(sign)?, instead))
        };
        let known = match (function, function.name()) {
            (WindowFunctionDefinition::WindowUDF(_), name) => match name {
                "row_number" => Self::RowNumber,
                "rank" => Self::Rank,
                "dense_rank" => Self::DenseRank,
                "percent_rank" => Self::PercentRank,
                "cume_dist" => Self::CumeDist,
                "ntile" => Self::Ntile(u64::try_from(whole(0)?).ok().filter(|parts| *parts > 0)?),
                "lag" => shifted(-1)?,
                "lead" => shifted(1)?,
                "first_value" => Self::First,
                "last_value" => Self::Last,
                "nth_value" => {
                    Self::Nth(usize::try_from(whole(1)?).ok().filter(|number| *number > 0)?)
                }
                _ => return None,
            },
            (WindowFunctionDefinition::AggregateUDF(_), name) if args.len() == 1 => match name {
                "count" => Self::Count,
                "sum" => Self::Sum,
                "avg" => Self::Average,
                "min" => Self::Least,
                "max" => Self::Most,
                _ => return None,
            },
            _ => return None,
        };
        Some(known)
    }

    /// Whether arguments of this type are taken, and answers of that type made. Of `sum` of a decimal they are not.
    pub fn takes(&self, argument: Option<&DataType>, answer: &DataType) -> bool {
        use DataType::{Float64, Int64, UInt64};
        match (self, argument) {
            (Self::Count, Some(_)) => *answer == Int64,
            (Self::Sum, Some(of)) => of == answer && [Int64, UInt64, Float64].contains(of),
            (Self::Average, Some(of)) => of == answer && *of == Float64,
            (Self::PercentRank | Self::CumeDist, _) => *answer == Float64,
            (Self::RowNumber | Self::Rank | Self::DenseRank | Self::Ntile(_), _) => {
                *answer == UInt64
            }
            (_, Some(of)) => of == answer,
            (_, None) => false,
        }
    }

    /// Whether it is a function of the rows of a frame.
    pub fn has_frame(&self) -> bool {
        use Kind::{Average, Count, First, Last, Least, Most, Nth, Sum};
        matches!(self, First | Last | Nth(_) | Count | Sum | Average | Least | Most)
    }

    /// Whether its argument is the first of those that are written.
    pub fn has_argument(&self) -> bool {
        self.has_frame() || matches!(self, Self::Shifted(..))
    }

    /// Whether it needs to be known which rows are alike, whatever its frame.
    pub fn needs_peers(&self) -> bool {
        matches!(self, Self::Rank | Self::DenseRank | Self::PercentRank | Self::CumeDist)
    }
}

/// A function, and its column.
#[derive(Debug)]
pub struct Function {
    /// What is computed.
    pub kind: Kind,
    /// The expression whose values are looked at; nothing of `rank()`.
    pub argument: Option<Arc<dyn PhysicalExpr>>,
    /// Which rows are counted.
    pub filter: Option<Arc<dyn PhysicalExpr>>,
    /// Which rows around each row it looks at; without meaning where [`Kind::has_frame`] is false.
    pub frame: WindowBounds,
    /// Name and type of the column.
    pub field: Arc<Field>,
}

/// The columns of a function, over sorted rows.
pub struct Input {
    /// The argument of each row.
    pub argument: Option<ArrayRef>,
    /// Whether a row is counted; a null is false.
    pub filter: Option<BooleanArray>,
}

impl Function {
    /// What it is for each row, in the order of `layout`.
    ///
    /// Errors: what the library says of a type.
    pub fn answers(&self, input: &Input, layout: &Layout) -> Result<ArrayRef> {
        match &self.kind {
            Kind::RowNumber => Ok(numbers(layout, |at, _| at as u64 + 1)),
            Kind::Ntile(parts) => Ok(numbers(layout, |at, rows| part_of(at, rows, *parts) + 1)),
            Kind::Rank => Ok(ranks(layout, |peers, _, _| peers.start as u64 + 1)),
            Kind::DenseRank => Ok(ranks(layout, |_, number, _| number as u64 + 1)),
            Kind::PercentRank => Ok(shares(layout, |peers, rows| {
                if rows > 1 { peers.start as f64 / (rows - 1) as f64 } else { 0.0 }
            })),
            Kind::CumeDist => Ok(shares(layout, |peers, rows| peers.end as f64 / rows as f64)),
            Kind::Shifted(by, instead) => shifted(argument(input)?, *by, instead, layout),
            _ => self.of_frames(argument(input)?, input, layout),
        }
    }

    /// A function of the rows of frames: a value of one of them, or what all of them come to.
    fn of_frames(&self, values: &ArrayRef, input: &Input, layout: &Layout) -> Result<ArrayRef> {
        let (starts, ends) = layout.frames(&self.frame);
        let frames = || starts.iter().zip(&ends).map(|(start, end)| *start as usize..*end as usize);
        // Indexes of the rows whose values are taken; one outside of the frame gives null.
        let picked = |index: &dyn Fn(Range<usize>) -> usize| {
            let at = frames().map(|frame| {
                let at = index(frame.clone());
                frame.contains(&at).then_some(at as u32)
            });
            Ok(take(values, &at.collect::<UInt32Array>(), None)?)
        };
        let is_counted = counted(values, input.filter.as_ref());
        match &self.kind {
            Kind::First => picked(&|frame| frame.start),
            Kind::Last => picked(&|frame| frame.end.wrapping_sub(1)),
            Kind::Nth(number) => picked(&|frame| frame.start + number - 1),
            Kind::Count => {
                let counts = Counts::new(is_counted.as_ref(), values.len());
                Ok(Arc::new(
                    frames()
                        .map(|frame| Some(counts.within(&frame) as i64))
                        .collect::<Int64Array>(),
                ))
            }
            Kind::Sum | Kind::Average => {
                let counts = Counts::new(is_counted.as_ref(), values.len());
                let is_valid =
                    |row: usize| is_counted.as_ref().is_none_or(|rows| rows.is_valid(row));
                sums(self.kind == Kind::Average, values, is_valid, frames(), &counts)
            }
            Kind::Least | Kind::Most => {
                let is_valid =
                    |row: usize| is_counted.as_ref().is_none_or(|rows| rows.is_valid(row));
                let at = extremes(values, self.kind == Kind::Most, is_valid, frames())?;
                Ok(take(values, &at, None)?)
            }
            other => internal_err!("{other:?} has no frame"),
        }
    }
}

/// The argument of a function that has one.
fn argument(input: &Input) -> Result<&ArrayRef> {
    match &input.argument {
        Some(argument) => Ok(argument),
        None => internal_err!("a function without its argument"),
    }
}

/// A number for each row, of its position in its partition and how many rows that has.
fn numbers(layout: &Layout, number: impl Fn(usize, usize) -> u64) -> ArrayRef {
    let all = layout.partitions.iter().flat_map(|partition| {
        let rows = partition.len();
        (0..rows).map(move |at| (at, rows))
    });
    Arc::new(UInt64Array::from_iter_values(all.map(|(at, rows)| number(at, rows))))
}

/// The part of a row where the first parts have a row more than the last, if parts cannot have the same size. Of 7 rows in 3 parts it is
/// 0, 0, 0, 1, 1, 2, 2; of 3 rows in 5 parts 0, 1, 2.
fn part_of(at: usize, rows: usize, parts: u64) -> u64 {
    let (at, rows) = (at as u64, rows as u64);
    let (size, larger) = (rows / parts, rows % parts);
    let in_larger = larger * (size + 1);
    match at < in_larger {
        true => at / (size + 1),
        false => larger + (at - in_larger) / size.max(1),
    }
}

/// Rows that are alike, by their positions in their partition; how many such groups are before them; and how many rows the partition has.
fn each_peers(layout: &Layout, mut visit: impl FnMut(Range<usize>, usize, usize)) {
    let mut peers = layout.peers.iter().peekable();
    for partition in &layout.partitions {
        let mut number = 0;
        while let Some(alike) = peers.next_if(|alike| alike.start < partition.end) {
            let within = alike.start - partition.start..alike.end - partition.start;
            visit(within, number, partition.len());
            number += 1;
        }
    }
}

/// An integer for each row, of its peers, how many groups of peers are before them, and how many rows the partition has.
fn ranks(layout: &Layout, rank: impl Fn(&Range<usize>, usize, usize) -> u64) -> ArrayRef {
    let mut all = Vec::new();
    each_peers(layout, |peers, number, rows| {
        all.extend(std::iter::repeat_n(rank(&peers, number, rows), peers.len()));
    });
    Arc::new(UInt64Array::from(all))
}

/// A share for each row, of its peers and how many rows the partition has.
fn shares(layout: &Layout, share: impl Fn(&Range<usize>, usize) -> f64) -> ArrayRef {
    let mut all = Vec::new();
    each_peers(layout, |peers, _, rows| {
        all.extend(std::iter::repeat_n(share(&peers, rows), peers.len()));
    });
    Arc::new(Float64Array::from(all))
}

/// Values of rows so many further on, and `instead` where the partition has no such row.
fn shifted(values: &ArrayRef, by: i64, instead: &ScalarValue, layout: &Layout) -> Result<ArrayRef> {
    let instead = instead.cast_to(values.data_type())?;
    // What there is instead stands behind the last row.
    let outside = (!instead.is_null()).then_some(values.len() as u32);
    let mut at = Vec::with_capacity(values.len());
    for partition in &layout.partitions {
        at.extend(partition.clone().map(|row| {
            let other = usize::try_from((row as i64).saturating_add(by)).ok();
            other.filter(|other| partition.contains(other)).map_or(outside, |row| Some(row as u32))
        }));
    }
    let at = UInt32Array::from(at);
    Ok(match outside {
        Some(_) => take(&concat(&[&**values, &*instead.to_array()?])?, &at, None)?,
        None => take(values, &at, None)?,
    })
}
