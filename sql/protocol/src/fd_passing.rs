//! How a worker gets the ends of its pipes: the server hands them over a socket to the template, which copies itself.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    io::retry_on_intr,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

/// Descriptors for one worker.
const ENDS: usize = 3;

/// What a worker is handed.
#[derive(Debug)]
pub struct Ends {
    /// Where it reads what it is asked.
    pub statement: OwnedFd,
    /// Where it answers.
    pub answer: OwnedFd,
    /// Stays with the template. Closed by the server, the worker is ended; what comes from there is how the worker ended,
    /// as the kernel says it: four bytes, little-endian.
    pub life: UnixStream,
}

impl Ends {
    /// Hands them to the template at the other end.
    ///
    /// Errors: `BrokenPipe` when it is not there any more; what the kernel says.
    pub fn send(&self, template: &UnixStream) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS))];
        let mut handed = SendAncillaryBuffer::new(&mut space);
        let ends = [self.statement.as_fd(), self.answer.as_fd(), self.life.as_fd()];
        if !handed.push(SendAncillaryMessage::ScmRights(&ends)) {
            return Err(io::Error::other("no room for descriptors"));
        }
        // There must be a byte that they come with.
        let byte = [IoSlice::new(&[0])];
        retry_on_intr(|| sendmsg(template, &byte, &mut handed, SendFlags::NOSIGNAL))?;
        Ok(())
    }

    /// The next ones, waited for; none when the server is not there any more.
    ///
    /// Errors: `InvalidData` when some are missing; what the kernel says.
    pub fn receive(server: impl AsFd) -> io::Result<Option<Self>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS))];
        let mut handed = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let bytes = &mut [IoSliceMut::new(&mut byte)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        if retry_on_intr(|| recvmsg(&server, bytes, &mut handed, flags))?.bytes == 0 {
            return Ok(None);
        }
        let mut ends = handed.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(ends) => ends.collect(),
            _ => Vec::new(),
        });
        match (ends.next(), ends.next(), ends.next()) {
            (Some(statement), Some(answer), Some(life)) => {
                Ok(Some(Self { statement, answer, life: life.into() }))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "descriptors are missing")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn ends_arrive_in_their_order() {
        let (server, template) = UnixStream::pair().unwrap();
        let (statement, mut asks) = io::pipe().unwrap();
        let (mut answers, answer) = io::pipe().unwrap();
        let (mut life, theirs) = UnixStream::pair().unwrap();
        let ends = Ends { statement: statement.into(), answer: answer.into(), life: theirs };
        ends.send(&server).unwrap();
        drop(ends);
        let ends = Ends::receive(&template).unwrap().unwrap();
        asks.write_all(b"?").unwrap();
        let mut read = [0];
        io::PipeReader::from(ends.statement).read_exact(&mut read).unwrap();
        assert_eq!(&read, b"?");
        io::PipeWriter::from(ends.answer).write_all(b"!").unwrap();
        (&ends.life).write_all(b".").unwrap();
        drop(ends.life);
        let mut said = Vec::new();
        answers.read_to_end(&mut said).unwrap();
        life.read_to_end(&mut said).unwrap();
        assert_eq!(said, b"!.");
        // A byte without any is no worker, and an end is the end.
        (&server).write_all(b"x").unwrap();
        assert_eq!(Ends::receive(&template).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(server);
        assert!(Ends::receive(&template).unwrap().is_none());
    }

    #[test]
    fn who_is_gone_is_known() {
        let (server, template) = UnixStream::pair().unwrap();
        drop(template);
        let (life, _) = UnixStream::pair().unwrap();
        let (statement, answer) = io::pipe().unwrap();
        let ends = Ends { statement: statement.into(), answer: answer.into(), life };
        assert_eq!(ends.send(&server).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
