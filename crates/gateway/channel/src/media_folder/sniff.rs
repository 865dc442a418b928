//! What a file is, by its bytes. Names and what senders say are not believed.

use crate::message::MediaKind;

/// What the bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sniffed {
    pub(super) media_type: &'static str,
    pub(super) extension: &'static str,
    /// Whether the bytes have a known signature.
    pub(super) is_known: bool,
}

/// Returns what the bytes are: by their signature, else plain text or unknown.
pub(super) fn sniff(bytes: &[u8]) -> Sniffed {
    let (media_type, extension) = match infer::get(bytes) {
        Some(found) => {
            return Sniffed {
                media_type: found.mime_type(),
                extension: found.extension(),
                is_known: true,
            };
        }
        None if is_text(bytes) => ("text/plain", "txt"),
        None => ("application/octet-stream", "bin"),
    };
    Sniffed {
        media_type,
        extension,
        is_known: false,
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let is_binary = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    str::from_utf8(bytes).is_ok_and(|text| !text.contains(is_binary))
}

impl Sniffed {
    /// Returns what the file is treated as. Something that is called a picture or a recording but is not becomes a file.
    pub(super) fn kind(&self, claimed: MediaKind) -> MediaKind {
        let is_a = |prefix: &str| self.media_type.starts_with(prefix);
        let fits = match claimed {
            MediaKind::Image => is_a("image/"),
            // Recorders put sound alone into the containers of videos.
            MediaKind::Audio => is_a("audio/") || is_a("video/"),
            MediaKind::File => true,
        };
        if fits { claimed } else { MediaKind::File }
    }
}

/// Returns what a file is whose sender did not say it.
pub fn kind_of_bytes(bytes: &[u8]) -> MediaKind {
    match sniff(bytes).media_type.split_once('/') {
        Some(("image", _)) => MediaKind::Image,
        Some(("audio", _)) => MediaKind::Audio,
        _ => MediaKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_decide_what_a_file_is() {
        let wav = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0";
        let table: [(&[u8], &str, &str, MediaKind); 7] = [
            (b"\x89PNG\r\n\x1a\n", "image/png", "png", MediaKind::Image),
            (b"\xff\xd8\xff\xe0", "image/jpeg", "jpg", MediaKind::Image),
            (wav, "audio/x-wav", "wav", MediaKind::Audio),
            (b"%PDF-1.7", "application/pdf", "pdf", MediaKind::File),
            ("grüße\n".as_bytes(), "text/plain", "txt", MediaKind::File),
            (b"", "text/plain", "txt", MediaKind::File),
            (b"a\0b", "application/octet-stream", "bin", MediaKind::File),
        ];
        for (bytes, media_type, extension, kind) in table {
            let sniffed = sniff(bytes);
            assert_eq!(sniffed.media_type, media_type);
            assert_eq!(sniffed.extension, extension, "{media_type}");
            assert_eq!(kind_of_bytes(bytes), kind, "{media_type}");
            assert_eq!(sniffed.kind(kind), kind, "{media_type}");
            assert_eq!(sniffed.kind(MediaKind::File), MediaKind::File);
            let is_picture = kind == MediaKind::Image;
            let as_picture = sniffed.kind(MediaKind::Image) == MediaKind::Image;
            assert_eq!(as_picture, is_picture, "{media_type}");
        }
    }
}
