//! WAV files: what their header says, compared with the bytes that are there.
//!
//! Headers lie: programs that write to a pipe cannot know the length, and senders write what they like. A file is handed on
//! only with a header that was written here.

use std::time::Duration;

use crate::container::AudioContainer;
use crate::error::VoiceError;

/// The sample rate that speech engines expect.
const ENGINE_RATE: u32 = 16_000;

/// The size of the header that is written.
const HEADER: usize = 44;

/// The code of integer samples.
const PCM: u16 = 1;
/// The code of a header whose real code follows in an extension.
const EXTENSIBLE: u16 = 0xfffe;

/// What a WAV file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wav<'a> {
    /// Whether the samples are integers, not floating-point numbers or compressed.
    pub is_pcm: bool,
    /// How many channels there are.
    pub channels: u16,
    /// How many samples a second has.
    pub rate: u32,
    /// How many bits a sample has.
    pub bits: u16,
    /// The bytes of the samples that are there and that the header declares.
    pub samples: &'a [u8],
}

impl<'a> Wav<'a> {
    /// Reads the header. Declared samples that are missing, and bytes after the declared ones, are left out.
    ///
    /// # Errors
    ///
    /// Fails if the file has no valid header or no samples.
    pub fn read(bytes: &'a [u8]) -> Result<Self, VoiceError> {
        let mut rest = bytes
            .strip_prefix(b"RIFF")
            .and_then(|rest| rest.get(4..)?.strip_prefix(b"WAVE"))
            .ok_or_else(|| damaged("it has no RIFF header"))?;
        let mut format = None;
        loop {
            let (id, declared, content) =
                chunk(rest).ok_or_else(|| damaged("it ends before its samples"))?;
            let present = content.get(..declared).unwrap_or(content);
            if id == b"fmt " {
                format = Some(Format::read(present)?);
            } else if id == b"data" {
                let format = format.ok_or_else(|| damaged("its format is missing"))?;
                return format.with(present);
            }
            // Chunks have an even number of bytes.
            let next = declared.saturating_add(declared % 2);
            rest = content.get(next..).unwrap_or_default();
        }
    }

    /// Returns how long the samples play.
    pub fn duration(&self) -> Duration {
        let bytes_per_second = u64::from(self.rate) * self.frame() as u64;
        let millis = (self.samples.len() as u64).saturating_mul(1000) / bytes_per_second.max(1);
        Duration::from_millis(millis)
    }

    /// Returns the file that speech engines expect: one channel with 16,000 samples of 16 bits a second. `None` if a converter
    /// has to make it.
    pub fn for_engine(&self) -> Option<Vec<u8>> {
        let is_fit = self.is_pcm && self.bits == 16 && self.rate == ENGINE_RATE;
        match (is_fit, self.channels) {
            (true, 1) => Some(write(self.rate, 1, self.samples)),
            (true, 2) => Some(write(self.rate, 1, &mixed(self.samples))),
            _ => None,
        }
    }

    /// Returns the file with a header that is true. `None` if its samples are not integers of 16 bits.
    pub fn with_true_header(&self) -> Option<Vec<u8>> {
        (self.is_pcm && self.bits == 16).then(|| write(self.rate, self.channels, self.samples))
    }

    /// Returns the number of bytes of one sample of all channels.
    fn frame(&self) -> usize {
        usize::from(self.channels) * usize::from(self.bits.div_ceil(8))
    }
}

/// The contents of the chunk `fmt `.
#[derive(Debug, Clone, Copy)]
struct Format {
    is_pcm: bool,
    channels: u16,
    rate: u32,
    bits: u16,
}

impl Format {
    fn read(chunk: &[u8]) -> Result<Self, VoiceError> {
        let short = |at| read_u16(chunk, at).ok_or_else(|| damaged("its format is cut"));
        let (code, channels, bits) = (short(0)?, short(2)?, short(14)?);
        let rate = read_u32(chunk, 4).ok_or_else(|| damaged("its format is cut"))?;
        let code = match code {
            EXTENSIBLE => short(24)?,
            code => code,
        };
        if channels == 0 || rate == 0 || bits == 0 || bits > 64 || rate > 768_000 || channels > 64 {
            return Err(damaged("its format is not possible"));
        }
        Ok(Self {
            is_pcm: code == PCM,
            channels,
            rate,
            bits,
        })
    }

    fn with(self, samples: &[u8]) -> Result<Wav<'_>, VoiceError> {
        let mut wav = Wav {
            is_pcm: self.is_pcm,
            channels: self.channels,
            rate: self.rate,
            bits: self.bits,
            samples,
        };
        let whole = samples.len() - samples.len() % wav.frame().max(1);
        wav.samples = samples.get(..whole).unwrap_or_default();
        if wav.samples.is_empty() {
            return Err(damaged("it has no samples"));
        }
        Ok(wav)
    }
}

/// Returns the name of a chunk, its declared length and everything after its header.
fn chunk(bytes: &[u8]) -> Option<(&[u8], usize, &[u8])> {
    let declared = usize::try_from(read_u32(bytes, 4)?).ok()?;
    Some((bytes.get(..4)?, declared, bytes.get(8..)?))
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn damaged(problem: &str) -> VoiceError {
    VoiceError::Damaged {
        format: AudioContainer::Wav.name(),
        problem: problem.to_owned(),
    }
}

/// Returns one channel with the mean of two.
fn mixed(samples: &[u8]) -> Vec<u8> {
    let (frames, _) = samples.as_chunks::<4>();
    let mix = |&[a, b, c, d]: &[u8; 4]| {
        let (left, right) = (i16::from_le_bytes([a, b]), i16::from_le_bytes([c, d]));
        left.midpoint(right).to_le_bytes()
    };
    frames.iter().flat_map(mix).collect()
}

/// Returns a WAV file with samples of 16 bits.
fn write(rate: u32, channels: u16, samples: &[u8]) -> Vec<u8> {
    // Samples come from files in memory that are far smaller than 4 GiB.
    let length = u32::try_from(samples.len()).unwrap_or(u32::MAX - 36);
    let frame = channels.saturating_mul(2);
    let mut file = Vec::with_capacity(HEADER + samples.len());
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&length.saturating_add(36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0");
    file.extend_from_slice(&channels.to_le_bytes());
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&rate.saturating_mul(u32::from(frame)).to_le_bytes());
    file.extend_from_slice(&frame.to_le_bytes());
    file.extend_from_slice(b"\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(samples);
    file
}

#[cfg(test)]
mod tests;
