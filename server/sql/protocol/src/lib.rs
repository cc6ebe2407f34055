//! What the server and its SQL workers say to each other.
//!
//! The server sends a [`Request`] (a statement, its parameters and the list of segments) over a pipe, and
//! reads [`Frame`]s of rows until [`Done`] or a [`Refusal`]. The pipes of a new worker travel over a socket
//! as descriptors ([`WorkerPipes`]), and so does shared memory with rows that no segment holds yet ([`send_memory`]).
//!
//! A crate of its own, so that the server is built, tested and changed without the SQL library: only the
//! program that is both, `inlay`, waits for it.

mod fd_passing;
mod message;

pub use fd_passing::{WorkerPipes, receive_memory, send_memory};
pub use message::{
    Ask, Done, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, Form, Frame, Head, OutColumn, ROWS, Reason,
    Refusal, Request, SegmentPart, granted, part_answer, read_granted, read_part_answer,
    read_recent, read_request, recent_head, request_head,
};
