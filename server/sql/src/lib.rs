//! Ad hoc SQL over the rows of one namespace, in a process of its own.
//!
//! A statement is somebody else's program: it may ask for more memory than there is, run without end, or make a
//! library overflow its stack. So it runs in a worker: a process that is there ahead of need and used once, without
//! files, network or a second chance. The server hands it a snapshot of the caller's rows and has it killed at the limit.
//! Workers are copies of a process that is ready, the template.
//!
//! | module | what is in it |
//! |---|---|
//! | `gate` | syntax: statements that are refused, and rewrites of PostgreSQL's forms before the library parses them |
//! | `tables` | `events` and the rollup tables: schema, scans, the statement's dictionary |
//! | `row_order` | rows in the order of several columns |
//! | `refuse` | errors of the library, worded for the author of the statement |
//! | `aggregate` | groups that are added up while they are read |
//! | `rules` | optimizer rules that put the two above in the place of the library's scans and aggregates |
//! | `physical` | operators of plans: windows, joins, shared subplans |
//! | `answer` | rows as JSON, NDJSON or CSV |
//! | `memory` | memory that operators count, and what the server grants beyond it |
//! | `session` | functions, settings and planning of one statement |
//! | `code_pages`, `confine` | code in huge pages; files, network and calls of the kernel that a worker gives up |
//! | `worker`, `template` | the process of one statement, and the process that it is forked from |
//!
//! What server and workers say to each other is the crate `inlay-sql-protocol`, which is all that the server needs.

mod aligned_memory;

mod row_order;

mod gate;

mod tables;

mod refuse;

mod aggregate;

mod rules;

mod physical;

mod answer;

mod memory;

mod session;

mod code_pages;
mod confine;

mod worker;

mod template;

pub use aligned_memory::AlignedMemory;
pub use answer::Out;
pub use session::{answer, blank};
pub use template::run;
pub use worker::STACK_BYTES;
