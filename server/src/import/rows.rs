//! What every format is read as: rows that are events, or say why they are none.
//!
//! ```text
//! {"tenant_id": "acme", "event_name": "order", "numeric_props": {"amount": 12.5}}      an event
//! "not valid JSON: expected `,` or `}` at line 1 column 4"                             a row that is refused
//! ```

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context as _;
use serde_json::{Map, Value as Json};

/// A row: parsed, or the reason why it is refused.
pub type Row = Result<ParsedRow, String>;

/// A row that could be read.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedRow {
    /// An empty line: it has a number, and no event.
    Blank,
    /// An event as the API takes it.
    Event {
        /// Fields of the event by their names.
        event: Map<String, Json>,
        /// The row as it stands in the file, from which the id of an event without one follows: whatever options make of it.
        raw: Vec<u8>,
        /// Whether `raw` is the event itself, as JSON.
        is_json: bool,
    },
}

/// Rows of a file in their order. An error is one of reading, and ends the import.
pub type RowStream = Box<dyn Iterator<Item = anyhow::Result<Row>> + Send>;

/// How far a file has been read.
///
/// Clones count together: the reading thread advances it, the command shows it. Of a compressed file it counts packed bytes.
#[derive(Debug, Clone, Default)]
pub struct Position {
    done: Arc<AtomicU64>,
    /// Length of the file in the unit of `done`, where it is known.
    pub total: Option<u64>,
}

impl Position {
    /// Of a file of so many bytes, or rows.
    pub fn of(total: Option<u64>) -> Self {
        Self { done: Arc::default(), total }
    }

    /// Counts what was read.
    pub fn advance(&self, by: u64) {
        self.done.fetch_add(by, Ordering::Relaxed);
    }

    /// The part that was read, from 0 to 1, where the length is known.
    ///
    /// `None` for standard input, and for an empty file.
    pub fn fraction(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0)?;
        Some((self.done.load(Ordering::Relaxed) as f64 / total as f64).min(1.0))
    }
}

/// A reader that says how far it is.
struct Counted<R> {
    inner: R,
    position: Position,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.position.advance(read as u64);
        Ok(read)
    }
}

/// Opens a file, or standard input for `-`; `.gz` and `.zst` are unpacked on the way. A mark of the byte order is passed over.
///
/// Errors: a file that cannot be read.
pub fn open(path: &Path) -> anyhow::Result<(Box<dyn BufRead + Send>, Position)> {
    let (mut reader, position): (Box<dyn BufRead + Send>, _) = if path == Path::new("-") {
        (Box::new(BufReader::new(io::stdin())), Position::default())
    } else {
        let file = open_file(path)?;
        let length = file.metadata().ok().filter(|metadata| metadata.is_file());
        let position = Position::of(length.map(|metadata| metadata.len()));
        let counted = BufReader::new(Counted { inner: file, position: position.clone() });
        let extension =
            path.extension().and_then(|name| name.to_str()).map(str::to_ascii_lowercase);
        let reader: Box<dyn BufRead + Send> = match extension.as_deref() {
            Some("gz") => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(counted))),
            Some("zst") => Box::new(BufReader::new(zstd::Decoder::with_buffer(counted)?)),
            _ => Box::new(counted),
        };
        (reader, position)
    };
    if reader.fill_buf().context("cannot read")?.starts_with(BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
    }
    Ok((reader, position))
}

// Programs of some offices begin UTF-8 with it; as a part of the first column's name it would be invisible.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Opens a file of the user.
///
/// Errors: one that cannot be read.
#[expect(clippy::disallowed_methods, reason = "a file of the user, not of the store")]
pub fn open_file(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}
