//! How long Opus in Ogg plays, counted from its packets.
//!
//! The positions that the pages declare are the sender's word. Packets say how much audio they contain, and a decoder cannot
//! make more of them.

use std::time::Duration;

/// The size of a page's header before its table of segments.
const PAGE_HEADER: usize = 27;

/// The flag of a page that begins within a packet.
const IS_CONTINUED: u8 = 1;

/// The packets at the beginning that are not audio.
const HEADER_PACKETS: u64 = 2;

/// Returns how long a file plays. `None` if it is damaged, or if it is not a single stream.
pub(crate) fn opus_length(bytes: &[u8]) -> Option<Duration> {
    let (mut rest, mut stream, mut is_open) = (bytes, None, false);
    let (mut packets, mut half_millis) = (0_u64, 0_u64);
    while !rest.is_empty() {
        let header: &[u8; PAGE_HEADER] = rest.first_chunk()?;
        let serial = header.get(14..18)?;
        let is_same = *stream.get_or_insert(serial) == serial;
        let is_continued = header.get(5)? & IS_CONTINUED != 0;
        if !header.starts_with(b"OggS") || !is_same || is_continued != is_open {
            return None;
        }
        let table_end = PAGE_HEADER + usize::from(*header.last()?);
        let table = rest.get(PAGE_HEADER..table_end)?;
        rest = rest.get(table_end..)?;
        for segment in table {
            let content;
            (content, rest) = rest.split_at_checked(usize::from(*segment))?;
            if !is_open {
                packets += 1;
                if packets > HEADER_PACKETS {
                    half_millis = half_millis.saturating_add(packet_length(content));
                }
            }
            is_open = *segment == u8::MAX;
        }
    }
    Some(Duration::from_micros(half_millis.saturating_mul(500)))
}

/// Returns how long a packet plays, in half milliseconds. Its first byte names the length of its frames, and how it counts
/// them.
fn packet_length(packet: &[u8]) -> u64 {
    let Some(first) = packet.first() else {
        return 0;
    };
    let (config, step) = (first >> 3, (first >> 3) & 3);
    let frame = match config {
        16.. => 5 << step,
        12.. => 20 << (step & 1),
        _ if step == 3 => 120,
        _ => 20 << step,
    };
    let frames = match first & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => packet.get(1).map_or(0, |count| count & 0x3f),
    };
    u64::from(frames) * frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a page with whole packets.
    fn page(serial: u8, packets: &[&[u8]]) -> Vec<u8> {
        let mut page = b"OggS".to_vec();
        page.resize(14, 0);
        page.extend([serial, 0, 0, 0]);
        page.resize(26, 0);
        page.push(u8::try_from(packets.len()).unwrap());
        page.extend(
            packets
                .iter()
                .map(|packet| u8::try_from(packet.len()).unwrap()),
        );
        page.extend(packets.concat());
        page
    }

    #[test]
    fn the_packets_count_and_not_what_the_pages_declare() {
        let start = [page(1, &[b"OpusHead"]), page(1, &[b"OpusTags"])].concat();
        // Code 3 with 48 frames of 2.5 ms, 2 frames of 60 ms, 1 frame of 20 ms.
        let audio = page(1, &[&[0x83, 48], &[0x19], &[0x08]]);
        let file = [start.clone(), audio.clone(), audio].concat();
        assert_eq!(opus_length(&file), Some(Duration::from_millis(520)));
        for (first, millis) in [
            (0, 10),
            (0x10, 40),
            (0x60, 10),
            (0x68, 20),
            (0x78, 20),
            (0x98, 20),
        ] {
            let file = [start.clone(), page(1, &[&[first]])].concat();
            let expected = Some(Duration::from_millis(millis));
            assert_eq!(opus_length(&file), expected, "{first:#x}");
        }
    }

    #[test]
    fn a_damaged_file_has_no_length() {
        let start = page(1, &[b"OpusHead"]);
        let mut continued = start.clone();
        continued[5] = 1;
        for rest in [&b"x"[..], &start[..30], &page(2, &[&[8]]), &continued] {
            assert_eq!(opus_length(&[&start, rest].concat()), None);
        }
    }
}
