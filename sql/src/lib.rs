//! Ad hoc SQL over the rows of one namespace, in a process of its own.
//!
//! A statement is somebody else's program: it may ask for more memory than there is, run without end, or make a
//! library overflow its stack. So it runs in a worker: a process that is there ahead of need and used once, without
//! files, network or a second chance. The server hands it a snapshot of the caller's rows and has it killed at the limit.
//! Workers are copies of a process that is ready, the template.
//!
//! From the floor up: what a statement may be (`gate`), the tables (`tables`), groups that are added up while they are read
//! (`aggregate`), what the optimizer is told of both (`rules`), the operators of a plan over them
//! (`physical`), the session that knows nothing else (`session`), what is answered (`answer`), the process (`worker`) and
//! what it is copied from (`template`). What server and workers say to each other is the crate `inlay-sql-protocol`,
//! which is all that the server needs.

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

pub use answer::Out;
pub use session::{answer, blank};
pub use template::run;
pub use worker::STACK_BYTES;
