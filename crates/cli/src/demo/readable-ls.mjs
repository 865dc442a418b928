// A hook of `tenterhook demo --scripts`, served by a worker that is started once.
import { on, patch } from 'tenterhook';

on('pre_tool_use', { matcher: 'shell' }, function readableLs(event) {
  if (event.tool_input.cmd === 'ls') return patch({ tool_input: { cmd: 'ls -h' } });
});
