//! Descriptors over sockets: the worker's ends of its pipes, which the server hands to the template that forks, and
//! shared memory with rows, which it hands to the worker.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
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

/// Descriptors of a message, at most. The kernel takes 253.
const AT_ONCE: usize = 64;

/// What a worker is handed.
#[derive(Debug)]
pub struct WorkerPipes {
    /// Where it reads what it is asked.
    pub statement: OwnedFd,
    /// Where it answers.
    pub answer: OwnedFd,
    /// Where it gets descriptors of shared memory.
    pub memory: UnixStream,
    /// Stays with the template. Closed by the server, the worker is ended; what comes from there is how the worker ended,
    /// as the kernel says it: four bytes, little-endian.
    pub control: UnixStream,
}

impl WorkerPipes {
    /// Hands them to the template at the other end.
    ///
    /// Errors: `BrokenPipe` when it is not there any more; what the kernel says.
    pub fn send(&self, template: &UnixStream) -> io::Result<()> {
        let Self { statement, answer, memory, control } = self;
        send(template, &[statement.as_fd(), answer.as_fd(), memory.as_fd(), control.as_fd()])
    }

    /// The next ones, waited for; none when the server is not there any more.
    ///
    /// Errors: `InvalidData` when some are missing; what the kernel says.
    pub fn receive(server: impl AsFd) -> io::Result<Option<Self>> {
        let Some(pipes) = receive(server)? else { return Ok(None) };
        let [statement, answer, memory, control]: [OwnedFd; 4] =
            pipes.try_into().map_err(|_| missing())?;
        Ok(Some(Self { statement, answer, memory: memory.into(), control: control.into() }))
    }
}

/// Sends descriptors of shared memory to a worker.
///
/// Errors: `BrokenPipe` when it is not there any more; what the kernel says.
pub fn send_memory(worker: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    descriptors.chunks(AT_ONCE).try_for_each(|some| send(worker, some))
}

/// So many descriptors, which the server has sent or is about to.
///
/// Errors: `InvalidData` when some are missing, `UnexpectedEof` when the server went away; what the kernel says.
pub fn receive_memory(server: impl AsFd, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut all = Vec::new();
    while all.len() < count {
        let some = receive(&server)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if some.is_empty() {
            return Err(missing());
        }
        all.extend(some);
    }
    Ok(all)
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "descriptors are missing")
}

fn send(socket: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut handed = SendAncillaryBuffer::new(&mut space);
    if !handed.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("no room for descriptors"));
    }
    // There must be a byte that they come with.
    let byte = [IoSlice::new(&[0])];
    retry_on_intr(|| sendmsg(socket, &byte, &mut handed, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// The descriptors of the next message; none when nobody sends any more.
fn receive(socket: impl AsFd) -> io::Result<Option<Vec<OwnedFd>>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut handed = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let bytes = &mut [IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    if retry_on_intr(|| recvmsg(&socket, bytes, &mut handed, flags))?.bytes == 0 {
        return Ok(None);
    }
    let descriptors = handed.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
        _ => Vec::new(),
    });
    Ok(Some(descriptors.collect()))
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
        let (mut control, theirs) = UnixStream::pair().unwrap();
        let (mut memory, memory_there) = UnixStream::pair().unwrap();
        let (statement, answer) = (statement.into(), answer.into());
        let pipes = WorkerPipes { statement, answer, memory: memory_there, control: theirs };
        pipes.send(&server).unwrap();
        drop(pipes);
        let pipes = WorkerPipes::receive(&template).unwrap().unwrap();
        asks.write_all(b"?").unwrap();
        let mut read = [0];
        io::PipeReader::from(pipes.statement).read_exact(&mut read).unwrap();
        assert_eq!(&read, b"?");
        io::PipeWriter::from(pipes.answer).write_all(b"!").unwrap();
        (&pipes.memory).write_all(b"m").unwrap();
        (&pipes.control).write_all(b".").unwrap();
        drop((pipes.control, pipes.memory));
        let mut said = Vec::new();
        answers.read_to_end(&mut said).unwrap();
        memory.read_to_end(&mut said).unwrap();
        control.read_to_end(&mut said).unwrap();
        assert_eq!(said, b"!m.");
        // A byte without any is no worker, and an end is the end.
        (&server).write_all(b"x").unwrap();
        assert_eq!(WorkerPipes::receive(&template).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(server);
        assert!(WorkerPipes::receive(&template).unwrap().is_none());
    }

    #[test]
    fn who_is_gone_is_known() {
        let (server, template) = UnixStream::pair().unwrap();
        drop(template);
        let (control, memory) = UnixStream::pair().unwrap();
        let (statement, answer) = io::pipe().unwrap();
        let (statement, answer) = (statement.into(), answer.into());
        let pipes = WorkerPipes { statement, answer, memory, control };
        assert_eq!(pipes.send(&server).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn any_number_of_descriptors_arrives_in_order() {
        for count in [0, 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE] {
            let (server, worker) = UnixStream::pair().unwrap();
            let (mut readers, writers): (Vec<_>, Vec<_>) =
                (0..count).map(|_| io::pipe().unwrap()).unzip();
            let pipes: Vec<_> = writers.iter().map(AsFd::as_fd).collect();
            send_memory(&server, &pipes).unwrap();
            drop(writers);
            let received = receive_memory(&worker, count).unwrap();
            for (number, end) in received.into_iter().enumerate() {
                io::PipeWriter::from(end).write_all(&[number as u8]).unwrap();
            }
            for (number, reader) in readers.iter_mut().enumerate() {
                let mut said = Vec::new();
                reader.read_to_end(&mut said).unwrap();
                assert_eq!(said, [number as u8]);
            }
            drop(server);
            let error = receive_memory(&worker, 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
