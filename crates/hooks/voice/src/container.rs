//! Detects the container format of audio from its bytes, because senders can choose any name and media type.

/// The container of audio, with its codec where that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AudioContainer {
    /// A WAV file.
    Wav,
    /// Opus in Ogg: the usual form of voice messages.
    OggOpus,
    /// Vorbis, or another codec, in Ogg.
    OggVorbis,
    /// An MP3 file.
    Mp3,
    /// AAC in MP4.
    M4a,
    /// A `WebM` file.
    Webm,
    /// A FLAC file.
    Flac,
}

impl AudioContainer {
    /// Every container.
    pub const ALL: [Self; 7] = [
        Self::Wav,
        Self::OggOpus,
        Self::OggVorbis,
        Self::Mp3,
        Self::M4a,
        Self::Webm,
        Self::Flac,
    ];

    /// Returns the container of a file; `None` if it is not known.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let starts = |magic: &[u8]| bytes.starts_with(magic);
        let has = |at: usize, magic: &[u8]| {
            let rest = bytes.get(at..);
            rest.is_some_and(|rest| rest.starts_with(magic))
        };
        match bytes {
            _ if starts(b"RIFF") && has(8, b"WAVE") => Some(Self::Wav),
            // The first packet of an Ogg stream names its codec. It follows the header of the first page.
            _ if starts(b"OggS") && has(28, b"OpusHead") => Some(Self::OggOpus),
            _ if starts(b"OggS") => Some(Self::OggVorbis),
            _ if starts(b"fLaC") => Some(Self::Flac),
            _ if starts(&[0x1a, 0x45, 0xdf, 0xa3]) => Some(Self::Webm),
            _ if has(4, b"ftyp") => Some(Self::M4a),
            _ if starts(b"ID3") => Some(Self::Mp3),
            // A frame of MPEG audio, layer III: eleven bits of synchronisation, then version and layer.
            [0xff, second, ..] if second & 0xe6 == 0xe2 => Some(Self::Mp3),
            _ => None,
        }
    }

    /// Returns the container that a media type stands for.
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let lower = media_type.to_ascii_lowercase();
        let (essence, parameters) = lower.split_once(';').unwrap_or((lower.as_str(), ""));
        match essence.trim() {
            "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some(Self::Wav),
            "audio/ogg" if parameters.contains("vorbis") => Some(Self::OggVorbis),
            "audio/ogg" | "audio/opus" | "application/ogg" => Some(Self::OggOpus),
            "audio/mpeg" | "audio/mp3" => Some(Self::Mp3),
            "audio/mp4" | "audio/m4a" | "audio/x-m4a" | "audio/aac" => Some(Self::M4a),
            "audio/webm" => Some(Self::Webm),
            "audio/flac" | "audio/x-flac" => Some(Self::Flac),
            _ => None,
        }
    }

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Wav => "audio/wav",
            Self::OggOpus | Self::OggVorbis => "audio/ogg",
            Self::Mp3 => "audio/mpeg",
            Self::M4a => "audio/mp4",
            Self::Webm => "audio/webm",
            Self::Flac => "audio/flac",
        }
    }

    /// Returns the extension of file names, without a dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::OggOpus | Self::OggVorbis => "ogg",
            Self::Mp3 => "mp3",
            Self::M4a => "m4a",
            Self::Webm => "webm",
            Self::Flac => "flac",
        }
    }

    /// Returns what people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wav => "WAV",
            Self::OggOpus => "Ogg/Opus",
            Self::OggVorbis => "Ogg/Vorbis",
            Self::Mp3 => "MP3",
            Self::M4a => "M4A",
            Self::Webm => "WebM",
            Self::Flac => "FLAC",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_told_by_its_bytes() {
        let ogg = |codec: &[u8]| [b"OggS".as_slice(), &[0; 24], codec].concat();
        for (bytes, expected) in [
            (b"RIFF\0\0\0\0WAVE".to_vec(), Some(AudioContainer::Wav)),
            (b"RIFF\0\0\0\0AVI ".to_vec(), None),
            (ogg(b"OpusHead"), Some(AudioContainer::OggOpus)),
            (ogg(b"\x01vorbis"), Some(AudioContainer::OggVorbis)),
            (b"OggS".to_vec(), Some(AudioContainer::OggVorbis)),
            (b"fLaC".to_vec(), Some(AudioContainer::Flac)),
            (b"ID3\x04".to_vec(), Some(AudioContainer::Mp3)),
            (vec![0xff, 0xfb, 0x90], Some(AudioContainer::Mp3)),
            // MPEG audio, layer reserved: AAC in ADTS.
            (vec![0xff, 0xf1, 0x90], None),
            (b"\0\0\0\x20ftypM4A ".to_vec(), Some(AudioContainer::M4a)),
            (vec![0x1a, 0x45, 0xdf, 0xa3], Some(AudioContainer::Webm)),
            (b"hello".to_vec(), None),
            (Vec::new(), None),
        ] {
            let found = AudioContainer::of_bytes(&bytes);
            assert_eq!(found, expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_container_is_found_by_its_own_media_type() {
        for container in AudioContainer::ALL {
            let found = AudioContainer::of_media_type(container.media_type());
            let same = found.map(AudioContainer::media_type);
            assert_eq!(same, Some(container.media_type()), "{container:?}");
        }
        assert_eq!(
            AudioContainer::of_media_type("Audio/OGG; codecs=opus"),
            Some(AudioContainer::OggOpus)
        );
        assert_eq!(AudioContainer::of_media_type("text/plain"), None);
    }
}
