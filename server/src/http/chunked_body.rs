//! Large answers, chunk by chunk.
//!
//! A body that is given as one chunk is written as one: the kernel copies megabytes of it in a single call, and other work on
//! that processor waits for its end. Chunks take some microseconds each. An answer of SQL with 40,000 bytes:
//!
//! ```text
//! frame 1   16,384 bytes   size hint before it: exactly 40,000
//! frame 2   16,384 bytes   exactly 23,616
//! frame 3    7,232 bytes   exactly 7,232
//! end
//! ```
//!
//! The length is known, so an answer that is not compressed has a `Content-Length` and is not sent in chunks of HTTP.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Bytes of a part. Some are gathered for one call, 64 KiB at most, which takes less than answering a small question.
const PART_BYTES: usize = 16 << 10;

/// A body that is written in parts, whose length is known.
pub struct Paced(pub Bytes);

impl Body for Paced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        let part = self.0.len().min(PART_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.0.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole() {
        for len in [0, 1, PART_BYTES, PART_BYTES + 1, 5 * PART_BYTES - 1] {
            let bytes: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
            let mut body = Paced(bytes.clone().into());
            assert_eq!(body.size_hint().exact(), Some(len as u64));
            let mut read = Vec::new();
            while let Poll::Ready(Some(Ok(frame))) =
                Pin::new(&mut body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()))
            {
                let part = frame.into_data().unwrap();
                assert!(part.len() <= PART_BYTES);
                read.extend_from_slice(&part);
                assert_eq!(body.size_hint().exact(), Some((len - read.len()) as u64));
            }
            assert!(body.is_end_stream());
            assert_eq!(read, bytes);
        }
    }
}
