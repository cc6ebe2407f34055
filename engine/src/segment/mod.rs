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
//! ```text
//! seg/2025-11-02/019a6356-6e00-7ec8-b074-7e0b5b63c210.seg    (of the golden files: 40 events of namespace 2, 3,918 bytes)
//!
//! rows      series                section           content
//! 0..28     (2, acme, call)       runs              four runs, each with its first and last time
//! 28..32    (2, acme, refund)     times             one block, packed in 20 bits
//! 32..39    (2, zeta, call)       event ids         texts
//! 39..40    (2, zeta, refund)     users             user-0 … user-9 of acme, then those of zeta
//!                                 user codes        3 bits a row
//!                                 text values model large, rare, small
//!                                 text codes model  2 bits a row: 1 is large, 2 rare, 3 small, 0 absent
//!                                 numbers ms        integers of 15 bits, divided by 100
//!                                 rollups           of (2, acme, call), and of call over both tenants
//! ```
//!
//! The question "calls of acme on that day, by model" reads no row of it: the run directory finds the series, and its rollup
//! says 21 of large and 7 of small.
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
