// What extensions of pi import from `@mariozechner/pi-coding-agent`: functions that tell events apart. The rest of that module are types.

/** Says whether an event is a call of this tool. */
export function isToolCallEventType(tool, event) {
  return event.toolName === tool;
}

const isResultOf = (tool) => (event) => event.toolName === tool;
export const isBashToolResult = isResultOf('bash');
export const isReadToolResult = isResultOf('read');
export const isEditToolResult = isResultOf('edit');
export const isWriteToolResult = isResultOf('write');
export const isGrepToolResult = isResultOf('grep');
export const isFindToolResult = isResultOf('find');
export const isLsToolResult = isResultOf('ls');

// Types that a stripper which looks at one name at a time leaves in an import.
export const ExtensionAPI = undefined;
export const ExtensionContext = undefined;
export const ExtensionCommandContext = undefined;
export const ExtensionFactory = undefined;
