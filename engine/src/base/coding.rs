//! Bytes in and out: little-endian integers, variable-length integers and length-prefixed text.
//!
//! Everything that the engine stores is written through [`Put`] and read back through [`Cursor`].
//! A cursor never panics and never allocates more than the bytes that it holds: a length that
//! reaches beyond the input is an error, whatever it claims.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::unwrap_used))]

use crate::error::{Error, Result};

/// Appends values to a byte buffer.
pub trait Put {
    /// Appends one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends two bytes, little-endian.
    fn put_u16(&mut self, value: u16);
    /// Appends four bytes, little-endian.
    fn put_u32(&mut self, value: u32);
    /// Appends eight bytes, little-endian.
    fn put_u64(&mut self, value: u64);
    /// Appends eight bytes, little-endian, in two's complement.
    fn put_i64(&mut self, value: i64);
    /// Appends sixteen bytes, little-endian.
    fn put_u128(&mut self, value: u128);
    /// Appends LEB128: seven bits a byte, low bits first.
    fn put_varint(&mut self, value: u64);
    /// Appends the length as a varint, then the bytes.
    fn put_bytes(&mut self, value: &[u8]);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_u128(&mut self, value: u128) {
        self.extend_from_slice(&value.to_le_bytes());
    }
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }
    fn put_bytes(&mut self, value: &[u8]) {
        self.put_varint(value.len() as u64);
        self.extend_from_slice(value);
    }
}

/// Maps a signed number to an unsigned one so that small magnitudes stay small.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Reverses [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Reads values from a byte slice, front to back.
#[derive(Clone)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    place: &'a str,
}

impl<'a> Cursor<'a> {
    /// A cursor over `bytes`; errors name `place`.
    pub fn new(bytes: &'a [u8], place: &'a str) -> Self {
        Self { rest: bytes, place }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Reads the next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, tail) =
            self.rest.split_at_checked(len).ok_or_else(|| self.error("ends too early"))?;
        self.rest = tail;
        Ok(head)
    }

    /// A `Corrupt` error that names the place of this cursor.
    #[cold]
    pub fn error(&self, detail: &str) -> Error {
        Error::corrupt(self.place, detail)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    /// Reads two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    /// Reads three bytes, little-endian; the result is below 2^24.
    pub fn u24(&mut self) -> Result<u32> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }
    /// Reads four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    /// Reads eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    /// Reads eight bytes, little-endian, in two's complement.
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }
    /// Reads sixteen bytes, little-endian.
    pub fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// Reads the sixteen bytes of a UUID.
    pub fn uuid(&mut self) -> Result<uuid::Uuid> {
        Ok(uuid::Uuid::from_bytes(self.array()?))
    }

    /// Reads a LEB128 integer of at most 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        // Most are small.
        match self.rest {
            [first @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*first))
            }
            [first, second @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(first & 0x7f) | u64::from(*second) << 7)
            }
            _ => self.long_varint(),
        }
    }

    /// The first eight bytes at once where there are so many: each gives seven bits, which are moved together.
    fn long_varint(&mut self) -> Result<u64> {
        let Some((head, behind)) = self.rest.split_first_chunk::<8>() else {
            return self.varint_from(0, 0);
        };
        let word = u64::from_le_bytes(*head);
        // The top bit of a byte says that another one follows.
        let len = (!word & 0x8080_8080_8080_8080).trailing_zeros() / 8 + 1;
        let own = if len < 8 { word & ((1 << (8 * len)) - 1) } else { word };
        let bits = own & 0x7f7f_7f7f_7f7f_7f7f;
        let bits = (bits & 0x007f_007f_007f_007f) | ((bits & 0x7f00_7f00_7f00_7f00) >> 1);
        let bits = (bits & 0x0000_3fff_0000_3fff) | ((bits & 0x3fff_0000_3fff_0000) >> 2);
        let bits = (bits & 0x0000_0000_0fff_ffff) | ((bits & 0x0fff_ffff_0000_0000) >> 4);
        if len > 8 {
            self.rest = behind;
            return match behind {
                [last @ ..0x80, rest @ ..] => {
                    self.rest = rest;
                    Ok(bits | u64::from(*last) << 56)
                }
                [ninth, last @ ..2, rest @ ..] => {
                    self.rest = rest;
                    Ok(bits | u64::from(ninth & 0x7f) << 56 | u64::from(*last) << 63)
                }
                _ => self.varint_from(bits, 56),
            };
        }
        self.rest = self.rest.get(len as usize..).unwrap_or_default();
        Ok(bits)
    }

    /// Reads the bytes of a varint from some bits on, after those that are in `value`.
    fn varint_from(&mut self, mut value: u64, first_bit: usize) -> Result<u64> {
        for shift in (first_bit..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.error("a varint is too large"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error("a varint is too long"))
    }

    /// Reads a LEB128 integer of at most 32 bits.
    pub fn varint_u32(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| self.error("a varint is too large"))
    }

    /// Reads a count of items that take at least `bytes_each` bytes each, so that a damaged count
    /// cannot ask for more memory than the input justifies.
    pub fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let count = usize::try_from(self.varint()?).map_err(|_| self.error("a count overflows"))?;
        match count.checked_mul(bytes_each) {
            Some(needed) if needed <= self.rest.len() => Ok(count),
            _ => Err(self.error("a count exceeds the input")),
        }
    }

    /// Reads a length as a varint, then so many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// Reads a length as a varint, then so many bytes that must be UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.error("text is not UTF-8"))
    }

    /// Fails unless everything was read.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.error("has trailing bytes")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_is_read_back(a: u64, b: i64, c: Vec<u8>, d: u128) {
            let mut out = Vec::new();
            out.put_varint(a);
            out.put_varint(zigzag(b));
            out.put_bytes(&c);
            out.put_u128(d);
            let mut cursor = Cursor::new(&out, "test");
            prop_assert_eq!(cursor.varint().unwrap(), a);
            prop_assert_eq!(unzigzag(cursor.varint().unwrap()), b);
            prop_assert_eq!(cursor.bytes().unwrap(), &c[..]);
            prop_assert_eq!(cursor.u128().unwrap(), d);
            cursor.finish().unwrap();
        }

        #[test]
        fn long_varints_are_those_read_byte_by_byte(
            follows in prop::collection::vec(0x80u8.., 0..12), last in 0u8..0x80, behind: Vec<u8>
        ) {
            let bytes = [&follows[..], &[last], &behind].concat();
            let (mut quick, mut plain) = (Cursor::new(&bytes, "test"), Cursor::new(&bytes, "test"));
            match (quick.varint(), plain.varint_from(0, 0)) {
                (Ok(quick_value), Ok(plain_value)) => {
                    prop_assert_eq!(quick_value, plain_value);
                    prop_assert_eq!(quick.remaining(), plain.remaining());
                }
                (quick, plain) => prop_assert!(quick.is_err() && plain.is_err()),
            }
        }

        #[test]
        fn no_input_panics(bytes: Vec<u8>) {
            let mut cursor = Cursor::new(&bytes, "test");
            while cursor.remaining() > 0 {
                if cursor.text().is_err() && cursor.u8().is_err() { break; }
            }
        }
    }

    #[test]
    fn a_count_beyond_the_input_is_refused() {
        let mut out = Vec::new();
        out.put_varint(1 << 40);
        assert!(Cursor::new(&out, "test").count(8).is_err());
    }
}
