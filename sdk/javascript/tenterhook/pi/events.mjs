// The functions of pi's package with which extensions distinguish events.

/** Returns whether an event is a call to this tool. */
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
export const isPowerShellToolResult = isResultOf('powershell');
