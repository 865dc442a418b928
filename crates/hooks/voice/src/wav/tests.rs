use std::time::Duration;

use proptest::prelude::*;

use super::{Wav, write};

/// Returns a file with this format and declared length.
fn file(code: u16, channels: u16, rate: u32, bits: u16, declared: u32, samples: &[u8]) -> Vec<u8> {
    let mut file = write(rate, channels, samples);
    file[20..22].copy_from_slice(&code.to_le_bytes());
    file[34..36].copy_from_slice(&bits.to_le_bytes());
    file[40..44].copy_from_slice(&declared.to_le_bytes());
    file
}

/// Returns silence with samples of 16 bits.
fn silence(seconds: usize, rate: usize, channels: usize) -> Vec<u8> {
    vec![0; seconds * rate * channels * 2]
}

// G94
#[test]
fn only_samples_that_are_declared_and_present_count() {
    let ten_seconds = silence(10, 16_000, 1);
    let hour = 3600 * 32_000;
    let too_much = file(1, 1, 16_000, 16, hour, &ten_seconds);
    let wav = Wav::read(&too_much).unwrap();
    assert_eq!(wav.duration(), Duration::from_secs(10));
    assert_eq!(wav.for_engine().unwrap(), write(16_000, 1, &ten_seconds));

    let too_little = file(1, 1, 16_000, 16, 320_000, &silence(20, 16_000, 1));
    let wav = Wav::read(&too_little).unwrap();
    assert_eq!(wav.duration(), Duration::from_secs(10));
    assert_eq!(wav.for_engine().unwrap(), write(16_000, 1, &ten_seconds));

    // Half a sample at the end.
    let cut = &write(16_000, 1, &ten_seconds)[..44 + 32_001];
    let wav = Wav::read(cut).unwrap();
    assert_eq!(wav.duration(), Duration::from_secs(1));
}

// G94
#[test]
fn other_formats_need_a_converter() {
    for (code, channels, rate, bits) in [
        (3, 1, 16_000, 32),
        (1, 1, 8_000, 16),
        (1, 1, 16_000, 8),
        (1, 6, 16_000, 16),
        (2, 1, 16_000, 4),
    ] {
        let samples = silence(1, 16_000, 6);
        let bytes = file(code, channels, rate, bits, u32::MAX, &samples);
        let wav = Wav::read(&bytes).unwrap();
        assert_eq!(wav.for_engine(), None, "{code} {channels} {rate} {bits}");
    }
}

#[test]
fn two_channels_are_mixed() {
    let samples = [100_i16, 300, -2, -4].map(i16::to_le_bytes).concat();
    let stereo = write(16_000, 2, &samples);
    let mono = [200_i16, -3].map(i16::to_le_bytes).concat();
    let wav = Wav::read(&stereo).unwrap();
    assert_eq!(wav.for_engine().unwrap(), write(16_000, 1, &mono));
}

// G94
#[test]
fn damaged_headers_are_named() {
    let whole = write(16_000, 1, &[0, 0]);
    let rate_of_zero = write(0, 1, &[0, 0]);
    let no_samples = write(16_000, 1, &[]);
    let data_first = [b"RIFF\0\0\0\0WAVEdata\x02\0\0\0".as_slice(), &[0, 0]].concat();
    for (bytes, expected) in [
        (&whole[..3], "it has no RIFF header"),
        (&whole[..12], "it ends before its samples"),
        (&whole[..30], "its format is cut"),
        (&whole[..40], "it ends before its samples"),
        (&rate_of_zero, "its format is not possible"),
        (&no_samples, "it has no samples"),
        (&data_first, "its format is missing"),
    ] {
        let error = Wav::read(bytes).unwrap_err().to_string();
        assert_eq!(error, format!("the WAV file is damaged: {expected}"));
    }
}

proptest! {
    #[test]
    fn what_is_read_is_never_more_than_what_is_there(
        code in prop_oneof![Just(1_u16), Just(3), Just(0xfffe), any::<u16>()],
        channels in prop_oneof![0_u16..4, any::<u16>()],
        rate in prop_oneof![Just(0_u32), Just(16_000), any::<u32>()],
        bits in prop_oneof![Just(16_u16), any::<u16>()],
        declared in prop_oneof![0_u32..200, Just(u32::MAX), any::<u32>()],
        samples in proptest::collection::vec(any::<u8>(), 0..200),
        damage in proptest::collection::vec((0_usize..60, any::<u8>()), 0..4),
        length in 0_usize..260,
    ) {
        let mut bytes = file(code, channels, rate, bits, declared, &samples);
        for (at, byte) in damage {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(length);
        if let Ok(wav) = Wav::read(&bytes) {
            prop_assert!(!wav.samples.is_empty() && wav.samples.len() < bytes.len());
            let _ = wav.duration();
            let made = [wav.for_engine(), wav.with_true_header()];
            for made in made.into_iter().flatten() {
                let read = Wav::read(&made).unwrap();
                prop_assert_eq!(read.with_true_header().unwrap(), made);
            }
        }
    }
}
