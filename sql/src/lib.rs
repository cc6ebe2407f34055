//! Ad hoc SQL over the rows of one namespace, in a process of its own.
//!
//! A statement is somebody else's program: it may ask for more memory than there is, run without end, or make a
//! library overflow its stack. So it runs in a worker: a process that is there ahead of need and used once, without
//! files, network or a second chance. The server hands it a snapshot of the caller's rows and has it killed at the limit.
//! Workers are copies of a process that is ready, the template.
//!
//! Without the feature `worker` this crate is the messages alone and how descriptors are handed over (`handing`). With it, from the floor up: what a statement may be
//! (`gate`), the tables (`table`), the session that knows nothing else (`session`), what is answered (`answer`),
//! the process (`worker`) and what it is copied from (`template`).

mod handing;
mod message;

#[cfg(feature = "worker")]
mod gate;
#[cfg(feature = "worker")]
mod refuse;

#[cfg(feature = "worker")]
mod table;

#[cfg(feature = "worker")]
mod answer;
#[cfg(feature = "worker")]
mod session;

#[cfg(feature = "worker")]
mod confine;

#[cfg(feature = "worker")]
mod worker;

#[cfg(feature = "worker")]
mod template;

pub use handing::Ends;
pub use message::{
    Ask, Done, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, Form, Frame, Head, OutColumn, ROWS, Reason,
    Refusal, Request, read_recent, read_request, recent_head, request_head,
};
#[cfg(feature = "worker")]
pub use {
    answer::Out,
    session::{answer, blank},
    template::run,
    worker::STACK_BYTES,
};
