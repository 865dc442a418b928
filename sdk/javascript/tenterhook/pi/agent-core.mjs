// The stand-in for pi's package with the loop of an agent. The loop is the host's; extensions use only
// functions around it.

export * from 'tenterhook:pi/messages.mjs';
export {
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_LINES,
  formatSize,
  GREP_MAX_LINE_LENGTH,
  truncateHead,
  truncateLine,
  truncateTail,
} from 'tenterhook:pi/truncate.mjs';

export const ok = (value) => ({ ok: true, value });
export const err = (error) => ({ ok: false, error });
export const toError = (thrown) => (thrown instanceof Error ? thrown : new Error(String(thrown)));
