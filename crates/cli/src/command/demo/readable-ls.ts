// A hook of `tenterhook demo --scripts`, served by a worker that is started once.
import { type Event, on, patch } from 'tenterhook';

const better: Record<string, string> = { ls: 'ls -h' };

on('pre_tool_use', { matcher: 'shell' }, function readableLs(event: Event) {
  const cmd = better[event.tool_input.cmd as string];
  if (cmd !== undefined) return patch({ tool_input: { cmd } });
});
