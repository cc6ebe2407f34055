//! Segments: immutable sorted files of events, column by column.
//!
//! Rows are ordered by namespace, tenant, event name, time. A segment is read through its footer,
//! which lists sections and their blocks with checksums. The keyspace holds the file's identity,
//! length and footer checksum, so a stale, swapped or cut file is refused before it is used, and
//! each block is verified when it is first touched.
//!
//! `merge` makes new segments out of old ones, a column at a time.
//!
//! `rollups` adds up what the rows of large series come to, so that most questions read no rows.
//!
//! Layout: `doc/format.md`, "Segments". Kinds of sections that a reader does not know are skipped.

mod dictionary;
mod event_ids;
mod layout;
mod rollup_directory;
mod run_summaries;
mod runs;

mod event_id_search;
mod run_bytes;
mod tenants;

mod event_id_prefix;

mod reader;

mod columns;
mod prefetch;
mod users;

mod rollups;
mod units;

mod verify;

mod writer;

mod merge;

pub use columns::{NumberReader, TextReader};
pub use dictionary::Dictionary;
pub use event_id_prefix::{EventIdCondition, EventIdPrefix};
pub use event_id_search::EventIdSet;
pub use event_ids::EventIds;
pub use layout::{
    DIRECTORY, Database, FRESH, FRESH_DIRECTORY, MERGED, SEALED, Section, SectionKind, SegmentMeta,
    USERS_A_BLOCK,
};
pub use merge::{Fate, MergeContext, Merged, Split, merge};
pub use reader::{Segment, SegmentFile};
pub use rollups::{
    DIGEST_ROWS_MIN, DimensionCounts, RollupAt, RollupForm, RollupReader, form_name as rollup_form,
    pair_name, parts_of_name,
};
pub use run_summaries::{Hours, RunSummaries, Series};
pub use runs::{Run, RunDay, RunDirectory};
pub use units::{Unit, Units, WEEK};
pub use users::UserReader;
pub use writer::{NewSegment, SegmentWriter, source_of};
