//! Segments: immutable sorted files of events, column by column.
//!
//! Rows are ordered by namespace, tenant, event name, time. A segment is read through its footer,
//! which lists sections and their blocks with checksums. The keyspace holds the file's identity,
//! length and footer checksum, so a stale, swapped or cut file is refused before it is used, and
//! each block is verified when it is first touched.
//!
//! `merge` makes new segments out of old ones, a column at a time.
//!
//! Layout: `doc/format.md`, "Segments". Kinds of sections that a reader does not know are skipped,
//! which is where rollups will be stored.

mod dictionary;
mod event_ids;
mod layout;
mod runs;

mod reader;

mod columns;

mod verify;

mod writer;

mod merge;

pub use columns::{NumberReader, TextReader};
pub use dictionary::Dictionary;
pub use event_ids::EventIds;
pub use layout::{
    DIRECTORY, Database, FRESH, FRESH_DIRECTORY, MERGED, SEALED, Section, SectionKind, SegmentMeta,
};
pub use merge::{Fate, MergeContext, Merged, Split, merge};
pub use reader::Segment;
pub use runs::{Run, RunDirectory};
pub use writer::{NewSegment, SegmentWriter, source_of};
