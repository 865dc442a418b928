//! The SHA-256 of content, as hexadecimal digits.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};

use sha2::{Digest as _, Sha256};

/// How many bytes of a file are read at once.
const CHUNK: usize = 64 << 10;

/// Returns the SHA-256 of bytes as hexadecimal digits.
pub fn hex_digest(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Computes the SHA-256 and the size of everything that is read through it.
#[derive(Debug)]
pub struct HashingReader<R> {
    inner: R,
    hash: Sha256,
    size: u64,
}

impl<R: Read> HashingReader<R> {
    /// Creates a reader that has read nothing.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            size: 0,
        }
    }

    /// Returns how many bytes have been read.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the SHA-256 of the bytes that have been read, as hexadecimal digits, and their number.
    pub fn finish(self) -> (String, u64) {
        (hex(&self.hash.finalize()), self.size)
    }

    /// Copies everything, and returns its SHA-256 as hexadecimal digits and its size.
    pub fn copy(from: R, to: &mut impl Write) -> io::Result<(String, u64)> {
        let mut reader = BufReader::with_capacity(CHUNK, Self::new(from));
        io::copy(&mut reader, to)?;
        Ok(reader.into_inner().finish())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let part = buffer.get(..count).ok_or_else(|| {
            io::Error::other("the reader returned more bytes than it had room for")
        })?;
        self.hash.update(part);
        self.size = self.size.saturating_add(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of `abc`, from the standard FIPS 180-2.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_has_64_lower_case_digits_whichever_way_it_is_computed() {
        assert_eq!(hex_digest("abc"), ABC);
        let mut copy = Vec::new();
        let (digest, size) = HashingReader::copy(&b"abc"[..], &mut copy).unwrap();
        assert_eq!(
            (digest.as_str(), size, copy.as_slice()),
            (ABC, 3, &b"abc"[..])
        );
        let long = vec![7; 3 * CHUNK + 1];
        let (digest, size) = HashingReader::copy(long.as_slice(), &mut io::sink()).unwrap();
        assert_eq!((digest, size), (hex_digest(&long), long.len() as u64));
    }
}
