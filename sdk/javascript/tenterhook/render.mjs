// Lines of text that extensions of pi render: calls and results of tools, messages, and the footer. Also finds the
// notifications for the user's desktop in what they print.

import fs from 'node:fs';
import path from 'node:path';

/** The columns for which a component writes its lines. */
const COLUMNS = 80;
/** The maximum number of lines of one component. */
const MAX_LINES = 200;

/** Returns the lines of a component, without empty lines around them. Returns undefined if it is not a component. */
export function linesOf(component) {
  if (typeof component?.render !== 'function') return undefined;
  const rendered = component.render(COLUMNS);
  if (!Array.isArray(rendered)) return undefined;
  const lines = rendered.slice(0, MAX_LINES).map((line) => String(line).trimEnd());
  const isEmpty = (line) => line === '' || line?.replace(/\x1b\[[0-9;]*m/g, '').trim() === '';
  while (lines.length > 0 && isEmpty(lines[0])) lines.shift();
  while (lines.length > 0 && isEmpty(lines.at(-1))) lines.pop();
  return lines;
}

/** Calls a function that returns a component, and returns its lines. If it fails, the default form is used. */
export function rendered(make) {
  try {
    return linesOf(make());
  } catch (error) {
    console.error(`a renderer failed: ${error}`);
    return undefined;
  }
}

/** Returns the branch that is checked out in a folder or above it, without starting git. */
function gitBranch() {
  for (let folder = process.cwd(); ; folder = path.dirname(folder)) {
    try {
      let found = path.join(folder, '.git');
      if (fs.statSync(found).isFile()) {
        found = path.resolve(folder, fs.readFileSync(found, 'utf8').replace(/^gitdir:/, '').trim());
      }
      const head = fs.readFileSync(path.join(found, 'HEAD'), 'utf8').trim();
      return head.startsWith('ref: refs/heads/') ? head.slice('ref: refs/heads/'.length) : 'detached';
    } catch (error) {
      if (error.code !== 'ENOENT' || folder === path.dirname(folder)) return null;
    }
  }
}

/** The texts that extensions have set with `setStatus`. */
export const statuses = new Map();

/** What a footer can read. */
const FOOTER_DATA = Object.freeze({
  getGitBranch: gitBranch,
  getExtensionStatuses: () => new Map(statuses),
  getAvailableProviderCount: () => 1,
  /** A footer is rendered before every prompt, so it needs no notice. */
  onBranchChange: () => () => {},
});

/** The footer that was set last, and the script that has set it. */
let footer;

/** Sets or removes the footer, and returns its lines. The host asks for them again before each prompt. */
export function setFooter(host, factory, screen, theme) {
  footer?.component?.dispose?.();
  footer = undefined;
  // A footer belongs to a terminal, which has one session.
  if (typeof factory !== 'function' || host.session !== undefined) return [];
  footer = { script: host.script, component: factory(screen, theme, FOOTER_DATA) };
  if (linesOf(footer.component) === undefined) footer = undefined;
  else host.ask('script/register', { script: host.script }).catch(console.error);
  return footerOf(host) ?? [];
}

/** Returns the lines of the footer of a script. */
export function footerOf(host) {
  return footer?.script === host.script ? rendered(() => footer.component) : undefined;
}

/** A notification: a sequence with a number, its text and its end, or the bell. */
const ALERT = /\x1b\](9|99|777);([^\x00-\x1f\x7f]*)(?:\x07|\x1b\\)|\x07/g;

let isWatching = false;

/** Reports the notifications in what extensions print, and removes them from the output. */
export function watchAlerts(report) {
  if (isWatching) return;
  isWatching = true;
  for (const stream of [process.stdout, process.stderr]) {
    const write = stream.write.bind(stream);
    stream.write = (data, ...rest) => {
      if (typeof data !== 'string' || !/[\x07\x1b]/.test(data)) return write(data, ...rest);
      const text = data.replace(ALERT, (_, code, content) => {
        report(Number(code ?? 0), content ?? '');
        return '';
      });
      return write(text, ...rest);
    };
  }
}
