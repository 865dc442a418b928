// How messages are prepared for a model, as in pi.

export const COMPACTION_SUMMARY_PREFIX =
  'The conversation before this point was replaced by this summary:\n\n<summary>\n';
export const COMPACTION_SUMMARY_SUFFIX = '\n</summary>';
export const BRANCH_SUMMARY_PREFIX = 'This is a summary of a branch that the conversation has left:\n\n<summary>\n';
export const BRANCH_SUMMARY_SUFFIX = '\n</summary>';

const textOf = (content) =>
  typeof content === 'string'
    ? content
    : content
        .filter(({ type }) => type === 'text')
        .map(({ text }) => text)
        .join('');
const blocks = (content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content);

/** Describes a command of the user and its output. */
export function bashExecutionToText({ command, output, cancelled, exitCode, truncated, fullOutputPath }) {
  const lines = [`Ran \`${command}\``, output ? `\`\`\`\n${output}\n\`\`\`` : '(no output)'];
  let text = lines.join('\n');
  if (cancelled) text += '\n\n(command cancelled)';
  else if (exitCode) text += `\n\nCommand exited with code ${exitCode}`;
  if (truncated && fullOutputPath) text += `\n\n[Output truncated. Full output: ${fullOutputPath}]`;
  return text;
}

/** How to get the content that a model reads, for each role that models do not know. */
const READ_AS = {
  bashExecution: (message) => (message.excludeFromContext ? undefined : bashExecutionToText(message)),
  custom: ({ content }) => content,
  branchSummary: ({ summary }) => BRANCH_SUMMARY_PREFIX + summary + BRANCH_SUMMARY_SUFFIX,
  compactionSummary: ({ summary }) => COMPACTION_SUMMARY_PREFIX + summary + COMPACTION_SUMMARY_SUFFIX,
};
const KNOWN = new Set(['user', 'assistant', 'toolResult']);

/** Converts messages of a session to messages that a model knows. */
export function convertToLlm(messages) {
  return messages.flatMap((message) => {
    if (KNOWN.has(message.role)) return [message];
    const content = READ_AS[message.role]?.(message);
    return content === undefined ? [] : [{ role: 'user', content: blocks(content), timestamp: message.timestamp }];
  });
}

/** The maximum number of characters of a tool result in a serialized conversation. */
const MAX_RESULT = 2000;
const shortened = (text) =>
  text.length > MAX_RESULT
    ? `${text.slice(0, MAX_RESULT)}\n\n[... ${text.length - MAX_RESULT} more characters truncated]`
    : text;

/** Writes a conversation as text, for example to have it summarised. */
export function serializeConversation(messages) {
  const written = messages.flatMap(({ role, content }) => {
    if (role === 'user') return [['User', textOf(content)]];
    if (role === 'toolResult') return [['Tool result', shortened(textOf(content))]];
    if (role !== 'assistant') return [];
    const of = (type, write) => content.filter((block) => block.type === type).map(write);
    const calls = of('toolCall', ({ name, arguments: given }) => {
      const list = Object.entries(given).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
      return `${name}(${list.join(', ')})`;
    });
    return [
      ['Assistant thinking', of('thinking', ({ thinking }) => thinking).join('\n')],
      ['Assistant', of('text', ({ text }) => text).join('\n')],
      ['Assistant tool calls', calls.join('; ')],
    ];
  });
  return written
    .filter(([, text]) => text)
    .map(([who, text]) => `[${who}]: ${text}`)
    .join('\n\n');
}

const time = (timestamp) => new Date(timestamp).getTime();
export const createBranchSummaryMessage = (summary, fromId, timestamp) => ({
  role: 'branchSummary',
  summary,
  fromId,
  timestamp: time(timestamp),
});
export const createCompactionSummaryMessage = (summary, tokensBefore, timestamp) => ({
  role: 'compactionSummary',
  summary,
  tokensBefore,
  timestamp: time(timestamp),
});
export const createCustomMessage = (customType, content, display, details, timestamp) => ({
  role: 'custom',
  customType,
  content,
  display,
  details,
  timestamp: time(timestamp),
});

/** Estimates the tokens of a message: four characters each. */
export function estimateTokens(message) {
  const characters = (content) =>
    blocks(content ?? []).reduce((sum, block) => {
      if (block.type === 'image') return sum + 4800;
      if (block.type === 'toolCall') return sum + block.name.length + JSON.stringify(block.arguments).length;
      return sum + (block.text ?? block.thinking ?? '').length;
    }, 0);
  const own = {
    bashExecution: (it) => it.command.length + it.output.length,
    branchSummary: (it) => it.summary.length,
    compactionSummary: (it) => it.summary.length,
  };
  return Math.ceil((own[message.role]?.(message) ?? characters(message.content)) / 4);
}

/** Returns the tokens that a service reported for a request and its answer. */
export const calculateContextTokens = (usage) =>
  usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;

/** Returns what the service reported for the last answer that was completed. */
export function getLastAssistantUsage(entries) {
  const isCounted = ({ type, message }) =>
    type === 'message' &&
    message.role === 'assistant' &&
    message.usage &&
    !['aborted', 'error'].includes(message.stopReason);
  return entries.findLast(isCounted)?.message.usage;
}

export const getLatestCompactionEntry = (entries) => entries.findLast(({ type }) => type === 'compaction') ?? null;
export const DEFAULT_COMPACTION_SETTINGS = { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 };
export const shouldCompact = (tokens, window, settings) =>
  settings.enabled && tokens > window - settings.reserveTokens;
