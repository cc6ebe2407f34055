//! Groups of records as they are in the log: numbers, checksums, bytes.
//!
//! ```text
//! group    lsn_first 41   count 2   chain_before 0x6a…   chain = crc32(chain_before, 41, 2, body)   body, with zstd where it is large
//! next     lsn_first 43   …         chain_before = the chain above
//! ```

use inlay_engine::{Error, Result};

/// Groups of at least so many bytes are compressed: below, the row around them is larger.
const COMPRESSED_FROM: usize = 1_024;
/// The fastest level: the bytes are columns already.
const ZSTD_LEVEL: i32 = 1;
/// Largest group, decompressed.
const GROUP_BYTES_MAX: usize = 1 << 30;

/// A group of records that are durable together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordGroup {
    /// Number of the first record.
    pub lsn_first: i64,
    /// How many records it has.
    pub count: i32,
    /// Checksum of the group before; 0 for the first one.
    pub chain_before: i64,
    /// Checksum of this one.
    pub chain: i64,
    /// The records, end to end.
    pub body: Vec<u8>,
}

impl RecordGroup {
    /// A group after the one with the checksum `chain_before`.
    ///
    /// Errors: numbers that the database has no room for.
    pub fn new(lsn_first: u64, count: u32, chain_before: i64, body: &[u8]) -> Result<Self> {
        let too_large = || Error::corrupt("log", "has no number left");
        let lsn_first = i64::try_from(lsn_first).map_err(|_| too_large())?;
        let count = i32::try_from(count).map_err(|_| too_large())?;
        let chain = chain_of(chain_before, lsn_first, count, body);
        Ok(Self { lsn_first, count, chain_before, chain, body: body.to_vec() })
    }

    /// Number of the last record.
    pub fn lsn_last(&self) -> i64 {
        self.lsn_first + i64::from(self.count) - 1
    }
}

fn chain_of(before: i64, lsn_first: i64, count: i32, body: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&before.to_le_bytes());
    hasher.update(&lsn_first.to_le_bytes());
    hasher.update(&count.to_le_bytes());
    hasher.update(body);
    i64::from(hasher.finalize())
}

/// Checks that groups are all that the log has above `after` up to `last`, of which the last one has the checksum `chain`.
///
/// Errors: `Corrupt` naming the first record that is missing or damaged.
pub fn check(groups: &[RecordGroup], after: i64, last: i64, chain: i64) -> Result<()> {
    let missing = |from: i64, to: i64| {
        Err(Error::corrupt("inlay.log", format!("records {from} to {to} are missing")))
    };
    let mut expected = after + 1;
    let mut before: Option<i64> = None;
    for group in groups {
        let first = group.lsn_first;
        // The first group may begin below: only whole groups are deleted.
        if first > expected || (before.is_some() && first < expected) {
            return missing(expected, first - 1);
        }
        let is_whole = group.count > 0
            && before.is_none_or(|before| before == group.chain_before)
            && chain_of(group.chain_before, first, group.count, &group.body) == group.chain;
        if !is_whole {
            return Err(Error::corrupt(
                "inlay.log",
                format!("the group of record {first} is damaged"),
            ));
        }
        expected = group.lsn_last() + 1;
        before = Some(group.chain);
    }
    if expected <= last {
        return missing(expected, last);
    }
    if before.is_some_and(|before| before != chain) || expected != last + 1 {
        return Err(Error::corrupt(
            "inlay.log",
            format!("does not end at record {last}, as inlay.cluster says"),
        ));
    }
    Ok(())
}

/// Bytes for the database, and whether they are compressed.
pub fn pack(body: &[u8]) -> (bool, Vec<u8>) {
    if body.len() >= COMPRESSED_FROM
        && let Ok(packed) = zstd::bulk::compress(body, ZSTD_LEVEL)
        && packed.len() < body.len()
    {
        return (true, [&(body.len() as u32).to_le_bytes(), packed.as_slice()].concat());
    }
    (false, body.to_vec())
}

/// What [`pack`] made, as it was. `lsn_first` names the group in errors.
pub fn unpack(is_compressed: bool, bytes: Vec<u8>, lsn_first: i64) -> Result<Vec<u8>> {
    if !is_compressed {
        return Ok(bytes);
    }
    let damaged =
        || Error::corrupt("inlay.log", format!("the group of record {lsn_first} is damaged"));
    let (len, packed) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    let len = u32::from_le_bytes(*len) as usize;
    let body = (len <= GROUP_BYTES_MAX).then(|| zstd::bulk::decompress(packed, len));
    body.and_then(std::io::Result::ok).filter(|body| body.len() == len).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups with these numbers of records, of one log.
    fn log(counts: &[u32]) -> Vec<RecordGroup> {
        let (mut groups, mut lsn, mut chain) = (Vec::new(), 1, 0);
        for count in counts {
            let group = RecordGroup::new(lsn, *count, chain, &[*count as u8; 30]).unwrap();
            (lsn, chain) = (lsn + u64::from(*count), group.chain);
            groups.push(group);
        }
        groups
    }

    #[test]
    fn a_log_is_whole_or_names_the_record_that_is_not() {
        let groups = log(&[2, 1, 4]);
        let chain = groups[2].chain;
        check(&groups, 0, 7, chain).unwrap();
        check(&groups[1..], 2, 7, chain).unwrap();
        check(&groups[2..], 5, 7, chain).unwrap();
        check(&[], 7, 7, chain).unwrap();
        let text = |result: Result<()>| result.unwrap_err().to_string();
        assert!(text(check(&groups[1..], 0, 7, chain)).contains("records 1 to 2 are missing"));
        let gap = [groups[0].clone(), groups[2].clone()];
        assert!(text(check(&gap, 0, 7, chain)).contains("records 3 to 3 are missing"));
        assert!(text(check(&groups[..2], 0, 7, chain)).contains("records 4 to 7 are missing"));
        assert!(text(check(&groups, 0, 7, 1)).contains("does not end at record 7"));
        assert!(text(check(&groups, 0, 6, chain)).contains("does not end at record 6"));
        for damage in 0..4 {
            let mut groups = groups.clone();
            match damage {
                0 => groups[1].body[3] ^= 1,
                1 => groups[1].chain ^= 1,
                2 => groups[1].chain_before ^= 1,
                _ => groups[1] = RecordGroup::new(3, 1, 77, b"of another history").unwrap(),
            }
            assert!(text(check(&groups, 0, 7, chain)).contains("group of record 3 is damaged"));
        }
    }

    #[test]
    fn large_groups_are_compressed_and_damage_is_an_error() {
        let small = vec![7; 100];
        assert_eq!(pack(&small), (false, small.clone()));
        let large = b"page_view ".repeat(10_000);
        let (is_compressed, packed) = pack(&large);
        assert!(is_compressed && packed.len() < large.len() / 20);
        assert_eq!(unpack(true, packed.clone(), 1).unwrap(), large);
        for len in 0..packed.len().min(40) {
            assert!(unpack(true, packed[..len].to_vec(), 1).is_err());
        }
        let mut wrong = packed;
        wrong[0] ^= 1;
        assert!(unpack(true, wrong, 1).unwrap_err().to_string().contains("record 1 is damaged"));
    }
}
