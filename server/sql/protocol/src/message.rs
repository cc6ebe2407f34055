//! The protocol between the server and a SQL worker.
//!
//! The server writes requests: the lengths of a head (u32) and of the list of segments (u64),
//! little endian; the head as JSON, the list as the engine serialized it. A request without a
//! statement asks the worker to open the segments ahead of need and is not answered.
//!
//! The worker answers a request with a statement by frames: a kind, a length (u32), and so many
//! bytes. It asks for the rows that segments lack when the statement is valid and the head says
//! that there may be such rows; the server writes their length (u64) and the rows. Where its memory
//! is not enough, the worker asks for more, before or between rows; the server writes the number of
//! bytes that it grants (u64). Where the directory has not all of a segment, the worker asks for parts
//! of it; the server writes 1 (u64) when a part is there, and 0 when it does not come. Columns and rows are written in the format that the client asked
//! for, and passed on as they are.

use std::{
    io::{self, Read, Write},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most bytes of a frame, without its kind and length.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// Bytes of kind and length before the content of a frame.
pub const FRAME_HEAD_BYTES: usize = 5;
/// The kind of a frame with rows.
pub const ROWS: u8 = b'R';
/// Longest head of a request in bytes: a statement and its parameters.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// Format of the rows of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// JSON arrays with commas between them.
    Rows,
    /// CSV, the names of the columns first.
    Csv,
    /// A JSON object a line.
    Lines,
}

/// A statement with its limits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    /// Text of the statement; the worker checks it.
    pub sql: String,
    /// Values of `$1`, `$2` and so on: strings, numbers, booleans and null.
    pub params: Vec<Value>,
    /// Format of the rows.
    pub form: Form,
    /// Rows that are answered, at most.
    pub rows_max: usize,
    /// Bytes of rows that are answered, at most.
    pub bytes_max: usize,
    /// Milliseconds until the statement is cancelled.
    pub wall_ms: u64,
}

/// Head of a request, sent as JSON before the list of segments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    /// Directory of the segment files.
    pub directory: PathBuf,
    /// Number of descriptors of shared memory with rows, which are sent before the request.
    pub memory: usize,
    /// Whether there may be rows outside of segments and shared memory, which the worker has to ask
    /// for.
    pub has_recent: bool,
    /// The statement; `None` only opens the segments ahead of need.
    pub ask: Option<Ask>,
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutColumn {
    /// Name or alias of the column, as the client gets it.
    pub name: String,
    /// Its type in SQL.
    #[serde(rename = "type")]
    pub kind: String,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Rows that were answered.
    pub rows: usize,
    /// Whether there were more.
    pub truncated: bool,
}

/// Reason for a missing or incomplete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The statement cannot be answered as it is.
    Invalid,
    /// It takes more memory than there is for it.
    TooLarge,
    /// Other statements hold the memory that it needs; only the server gives this reason.
    Busy,
    /// It takes longer than it may.
    TooSlow,
    /// Not the statement's fault.
    Broken,
}

/// An error in place of an answer, or of its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Kind of error.
    pub reason: Reason,
    /// Message for the client.
    pub message: String,
    /// Line and column in the statement, from 1, where they are known.
    pub position: Option<(u64, u64)>,
    /// A hint: how to write the statement instead.
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without more to say.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), position: None, hint: None }
    }

    /// The statement cannot be answered as it is.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, message)
    }

    /// The same with a hint.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Some bytes of a segment: from an offset to before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPart {
    /// Name of the segment.
    pub segment: [u8; 16],
    /// The first byte.
    pub start: u64,
    /// The byte behind the last one.
    pub end: u64,
}

impl SegmentPart {
    fn bytes(&self) -> Vec<u8> {
        [&self.segment[..], &self.start.to_le_bytes(), &self.end.to_le_bytes()].concat()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (segment, bytes) = bytes.split_first_chunk()?;
        let (start, end) = bytes.split_first_chunk()?;
        let (start, end) = (u64::from_le_bytes(*start), u64::from_le_bytes(end.try_into().ok()?));
        Some(Self { segment: *segment, start, end })
    }
}

/// A part of a worker's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The worker has read the statement: if it ends from now on, the statement is the cause.
    Accepted,
    /// The statement may be asked: it needs the rows that no segment holds, of which there may be some.
    NeedMemtable,
    /// The worker needs so many bytes of memory in addition.
    MoreMemory(u64),
    /// The worker needs some bytes of a segment of which the directory has not all.
    NeedPart(SegmentPart),
    /// Columns of the result, sent once before all rows.
    Columns(Vec<OutColumn>),
    /// Some rows, in the requested format.
    Rows(Vec<u8>),
    /// End of a complete or truncated answer.
    Done(Done),
    /// End without an answer, or without all of it.
    Refused(Refusal),
    /// A segment went away before it was opened: ask again with a newer snapshot.
    SnapshotGone,
}

impl Frame {
    /// As bytes, with kind and length.
    ///
    /// Errors: `InvalidInput` when it is too large.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (kind, bytes) = match self {
            Self::Columns(columns) => (b'C', serde_json::to_vec(columns)?),
            Self::Rows(rows) => (ROWS, rows.clone()),
            Self::Done(done) => (b'D', serde_json::to_vec(done)?),
            Self::Refused(refusal) => (b'X', serde_json::to_vec(refusal)?),
            Self::SnapshotGone => (b'S', Vec::new()),
            Self::Accepted => (b'T', Vec::new()),
            Self::NeedMemtable => (b'W', Vec::new()),
            Self::MoreMemory(bytes) => (b'M', bytes.to_le_bytes().to_vec()),
            Self::NeedPart(part) => (b'P', part.bytes()),
        };
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a frame is too large"));
        }
        out.write_all(&[kind])?;
        out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        out.write_all(&bytes)
    }

    /// Kind and length of a frame from what stands before its bytes.
    ///
    /// Errors: `InvalidData`.
    pub fn head(head: [u8; FRAME_HEAD_BYTES]) -> io::Result<(u8, usize)> {
        let [kind, a, b, c, d] = head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        if len > FRAME_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
        }
        Ok((kind, len))
    }

    /// A frame of a kind from its bytes.
    ///
    /// Errors: `InvalidData`.
    pub fn read(kind: u8, bytes: Vec<u8>) -> io::Result<Self> {
        Ok(match kind {
            b'C' => Self::Columns(serde_json::from_slice(&bytes)?),
            ROWS => Self::Rows(bytes),
            b'D' => Self::Done(serde_json::from_slice(&bytes)?),
            b'X' => Self::Refused(serde_json::from_slice(&bytes)?),
            b'S' => Self::SnapshotGone,
            b'T' => Self::Accepted,
            b'W' => Self::NeedMemtable,
            b'M' => {
                let bytes = <[u8; 8]>::try_from(&*bytes);
                Self::MoreMemory(u64::from_le_bytes(bytes.map_err(|_| io::ErrorKind::InvalidData)?))
            }
            b'P' => Self::NeedPart(SegmentPart::of(&bytes).ok_or(io::ErrorKind::InvalidData)?),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame of no kind")),
        })
    }
}

/// The bytes of a request before the list of segments, which has `segments` bytes.
///
/// Errors: `InvalidInput` when the statement is too long for any worker.
pub fn request_head(head: &Head, segments: usize) -> io::Result<Vec<u8>> {
    let head = serde_json::to_vec(head)?;
    if head.len() > HEAD_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a statement is too long"));
    }
    let mut out = (head.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&(segments as u64).to_le_bytes());
    out.extend_from_slice(&head);
    Ok(out)
}

/// A request as it was read.
#[derive(Debug)]
pub struct Request {
    /// Head of the request, with the statement.
    pub head: Head,
    /// The list of segments, as the engine serialized it.
    pub segments: Vec<u8>,
}

/// Reads a request; `taken` gets its head before the list of segments is read.
///
/// Errors: `InvalidData`, `UnexpectedEof` when the server has closed the pipe; those of `taken`.
pub fn read_request(
    input: &mut impl Read,
    taken: impl FnOnce(&Head) -> io::Result<()>,
) -> io::Result<Request> {
    let (mut head_len, mut segments) = ([0; 4], [0; 8]);
    input.read_exact(&mut head_len)?;
    input.read_exact(&mut segments)?;
    let head_len = u32::from_le_bytes(head_len) as usize;
    if head_len > HEAD_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a request is too long"));
    }
    let head = serde_json::from_slice(&part(input, head_len as u64)?)?;
    taken(&head)?;
    Ok(Request { head, segments: part(input, u64::from_le_bytes(segments))? })
}

/// The bytes before the rows that segments lack: the length of these rows.
pub fn recent_head(len: usize) -> [u8; 8] {
    (len as u64).to_le_bytes()
}

/// The answer to a worker that asks for memory.
pub fn granted(bytes: u64) -> [u8; 8] {
    bytes.to_le_bytes()
}

/// Reads how many bytes were granted.
///
/// Errors: `UnexpectedEof` when the server went away.
pub fn read_granted(input: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The answer to a worker that asks for a part of a segment: whether it is there.
pub fn part_answer(is_there: bool) -> [u8; 8] {
    u64::from(is_there).to_le_bytes()
}

/// Reads whether a part of a segment is there.
///
/// Errors: `UnexpectedEof` when the server went away.
pub fn read_part_answer(input: &mut impl Read) -> io::Result<bool> {
    read_granted(input).map(|answer| answer == 1)
}

/// Reads the rows that segments lack.
///
/// Errors: `UnexpectedEof` when the server went away.
pub fn read_recent(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 8];
    input.read_exact(&mut len)?;
    part(input, u64::from_le_bytes(len))
}

fn part(input: &mut impl Read, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if input.take(len).read_to_end(&mut bytes)? as u64 != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let ask = Ask {
            sql: "SELECT 'é'".to_owned(),
            params: vec![Value::from(1), Value::Null],
            form: Form::Lines,
            rows_max: 5,
            bytes_max: 6,
            wall_ms: 7,
        };
        let head =
            Head { directory: "/x".into(), memory: 3, has_recent: true, ask: Some(ask.clone()) };
        let mut bytes = request_head(&head, 3).unwrap();
        bytes.extend_from_slice(b"abc");
        bytes.extend_from_slice(&recent_head(2));
        bytes.extend_from_slice(b"de and more");
        let mut told = None;
        let taken = |head: &Head| {
            told = Some(head.ask.is_some());
            Ok(())
        };
        let mut input = &bytes[..];
        let Request { head, segments } = read_request(&mut input, taken).unwrap();
        let recent = read_recent(&mut input).unwrap();
        assert_eq!(told, Some(true));
        let read = head.ask.unwrap();
        assert_eq!((read.sql, read.params, read.form), (ask.sql, ask.params, ask.form));
        assert_eq!((&*segments, &*recent), (&b"abc"[..], &b"de"[..]));
        assert!(read_request(&mut &bytes[..20], |_| Ok(())).is_err());
        assert!(read_recent(&mut &recent_head(2)[..]).is_err());
        let refusal = Refusal::invalid("no").hint("yes");
        let column = OutColumn { name: "a".to_owned(), kind: "BIGINT".to_owned() };
        for frame in [
            Frame::Columns(vec![column]),
            Frame::Rows(b"[1]".to_vec()),
            Frame::Done(Done { rows: 1, truncated: true }),
            Frame::Refused(Refusal { position: Some((1, 2)), ..refusal }),
            Frame::SnapshotGone,
            Frame::Accepted,
            Frame::NeedMemtable,
            Frame::MoreMemory(1 << 40),
            Frame::NeedPart(SegmentPart { segment: [7; 16], start: 1, end: 1 << 40 }),
        ] {
            let mut bytes = Vec::new();
            frame.write(&mut bytes).unwrap();
            let (kind, len) = Frame::head(bytes[..5].try_into().unwrap()).unwrap();
            assert_eq!(
                (Frame::read(kind, bytes[5..].to_vec()).unwrap(), len),
                (frame, bytes.len() - 5)
            );
        }
        assert!(Frame::read(b'?', Vec::new()).is_err());
        assert!(Frame::read(b'M', vec![0; 7]).is_err());
        assert!(Frame::read(b'P', vec![0; 31]).is_err() && Frame::read(b'P', vec![0; 33]).is_err());
        assert_eq!(read_granted(&mut &granted(5)[..]).unwrap(), 5);
        assert!(read_part_answer(&mut &part_answer(true)[..]).unwrap());
        assert!(!read_part_answer(&mut &part_answer(false)[..]).unwrap());
        assert!(Frame::head([b'R', 255, 255, 255, 255]).is_err());
        assert!(Frame::Rows(vec![0; FRAME_BYTES_MAX + 1]).write(&mut Vec::new()).is_err());
    }
}
