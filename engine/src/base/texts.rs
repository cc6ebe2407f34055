//! Strings end to end: many short ones in two pieces of memory.

/// Strings end to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextTable {
    /// Where each string ends.
    pub ends: Vec<u32>,
    /// Their bytes, UTF-8.
    pub bytes: Vec<u8>,
}

impl TextTable {
    /// Appends a string. The caller keeps the table below 4 GiB.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }

    /// Appends strings that stand end to end, each up to one of `ends`.
    pub fn extend(&mut self, bytes: &[u8], ends: impl Iterator<Item = usize>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.ends.extend(ends.map(|end| u32::try_from(start + end).unwrap_or(u32::MAX)));
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of a string; empty behind the end.
    pub fn at(&self, index: usize) -> &[u8] {
        let end = self.ends.get(index).copied().unwrap_or_default();
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.bytes.get(start.unwrap_or_default() as usize..end as usize).unwrap_or_default()
    }

    /// A string; empty behind the end, and where it is not UTF-8.
    pub fn text(&self, index: usize) -> &str {
        std::str::from_utf8(self.at(index)).unwrap_or_default()
    }

    /// The strings as bytes, in the order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.at(index))
    }

    /// The index of a string in a table whose strings rise.
    pub fn position(&self, text: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at(middle).cmp(text) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}
