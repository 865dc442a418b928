// How the output of tools is cut: to a number of lines and a number of bytes, whichever is reached first.

export const DEFAULT_MAX_LINES = 2000;
export const DEFAULT_MAX_BYTES = 50 * 1024;
export const GREP_MAX_LINE_LENGTH = 500;

/** Returns a number of bytes in a readable form, such as `1.5KB`. */
export function formatSize(bytes) {
  if (bytes < 1024) return `${bytes}B`;
  const [size, unit] = bytes < 1024 ** 2 ? [bytes / 1024, 'KB'] : [bytes / 1024 ** 2, 'MB'];
  return size.toFixed(1) + unit;
}

/**
 * Cuts text. `order` lists the lines in the order in which they are kept; `cutLine` handles a first line that is
 * too long.
 */
function truncate(text, { maxLines = DEFAULT_MAX_LINES, maxBytes = DEFAULT_MAX_BYTES } = {}, order, cutLine) {
  const lines = text.split('\n');
  const totals = { totalLines: lines.length, totalBytes: Buffer.byteLength(text), maxLines, maxBytes };
  const marks = { lastLinePartial: false, firstLineExceedsLimit: false };
  if (totals.totalLines <= maxLines && totals.totalBytes <= maxBytes) {
    const whole = { outputLines: totals.totalLines, outputBytes: totals.totalBytes };
    return { content: text, truncated: false, truncatedBy: null, ...totals, ...whole, ...marks };
  }
  const kept = [];
  let bytes = 0;
  let truncatedBy = 'lines';
  for (const line of order(lines)) {
    if (kept.length >= maxLines) break;
    const size = Buffer.byteLength(line) + (kept.length > 0 ? 1 : 0);
    if (bytes + size > maxBytes) {
      truncatedBy = 'bytes';
      if (kept.length === 0) Object.assign(marks, cutLine(line, maxBytes, kept));
      break;
    }
    kept.push(line);
    bytes += size;
  }
  const content = [...order(kept)].join('\n');
  const made = { outputLines: kept.length, outputBytes: Buffer.byteLength(content) };
  return { content, truncated: true, truncatedBy, ...totals, ...made, ...marks };
}

/** Keeps the first lines. A line is never cut: if the first one is too long, the result is empty. */
export function truncateHead(text, options) {
  return truncate(
    text,
    options,
    (lines) => lines,
    () => ({ firstLineExceedsLimit: true }),
  );
}

function* backwards(lines) {
  for (let at = lines.length - 1; at >= 0; at -= 1) yield lines[at];
}

/** Keeps the last lines. If the last one is too long, only its end is kept. */
export function truncateTail(text, options) {
  return truncate(text, options, backwards, (line, maxBytes, kept) => {
    const bytes = Buffer.from(line);
    let start = bytes.length - maxBytes;
    // Do not begin in the middle of a character.
    while (start < bytes.length && (bytes[start] & 0xc0) === 0x80) start += 1;
    kept.push(bytes.subarray(start).toString());
    return { lastLinePartial: true };
  });
}

/** Cuts a line to a number of characters. */
export function truncateLine(line, maxChars = GREP_MAX_LINE_LENGTH) {
  const wasTruncated = line.length > maxChars;
  return { text: wasTruncated ? `${line.slice(0, maxChars)}... [truncated]` : line, wasTruncated };
}
