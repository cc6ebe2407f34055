//! Ad hoc SQL over the rows of one namespace, in a process of its own.
//!
//! A statement is somebody else's program: it may ask for more memory than there is, run without end, or make a
//! library overflow its stack. So it runs in a worker: a child of the server, started ahead of need and used
//! once, without files, network or a second chance. The server hands it a snapshot of the caller's rows and kills it
//! at the limit.
//!
//! Without the feature `worker` this crate is the messages alone. With it, from the floor up: what a statement may be
//! (`gate`), the tables (`table`), the session that knows nothing else (`session`), what is answered (`answer`),
//! and the process (`worker`).

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

pub use message::{
    Ask, Done, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, Form, Frame, Head, OutColumn, Reason, Refusal,
    Request, read_request, request_head,
};
#[cfg(feature = "worker")]
pub use {
    answer::Out,
    session::{answer, blank},
    worker::{STACK_BYTES, run},
};
