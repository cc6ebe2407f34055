//! Rows of one namespace, column by column, for SQL; metric queries read in `exec`.
//!
//! A [`Snapshot`] is what one instant shows of a namespace. It is opened where it was taken, or handed over to
//! another process as bytes: the list of segments, which that process maps for itself, and the rows that
//! no segment holds yet. A [`Scan`] names sources; a source its series and, for times that are asked for,
//! the row ranges to read. Rows of other namespaces, and rows that expired, are never among them.
//!
//! Nothing here evaluates more than equality of texts and bounds of numbers: that is for whoever reads.

mod hours;
mod row_ranges;
mod values;

mod vectors;

mod recent;
mod sealed;

mod source;

mod sizes;

mod snapshot;

pub use hours::{Hour, HourStates, NumberState, StateSelection, UserState};
pub use row_ranges::{BucketRun, Grain, Morsel, RowRange, Series, SeriesFilter, TimeBuckets};
pub use sealed::UserTexts;
pub use sizes::Sizes;
pub use snapshot::{LoadParts, MissingSegments, OpenSegments, Scan, SerializedSnapshot, Snapshot};
pub use source::Source;
pub use values::{Column, Filter, TextMatch, TextTable, Values};

pub use crate::segment::{EventIdCondition, EventIdPrefix, EventIdSet};
