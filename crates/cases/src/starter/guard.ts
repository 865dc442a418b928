// This guard denies shell commands that are hard to undo.
//
// Try it:     tenterhook test
// Use it:     tenterhook trust
//
// It reads the command line and does not run it, so it cannot see what a script, an alias, a variable
// or another language does: `./cleanup.sh`, `$CMD`, `python3 -c '...'`.

import { type Event, deny, on } from 'tenterhook';

// Programs that run a word as a command line. `-c` is for all the others, such as `su -c '...'`.
const SHELLS = ['sh', 'bash', 'dash', 'zsh', 'eval', 'trap', 'env', 'ssh', 'watch', '-c'];

// `tool_guard` sees each tool call as it would run, after all changes by other hooks.
on('tool_guard', { matcher: 'shell' }, function guard(event: Event) {
  for (const words of commands(event.tool_input.cmd)) {
    const reason = objection(words);
    if (reason) return deny(reason);
  }
});

/** Returns why a command is not allowed. */
function objection(words: string[]): string | undefined {
  for (const [at, word] of words.entries()) {
    // `sudo rm`, `/bin/rm` and `xargs rm` are found as well.
    const program = basename(word);
    const rest = words.slice(at + 1);
    if (program === 'rm' && has(rest, 'rR', '--recursive') && has(rest, 'f', '--force')) {
      return '`rm -rf` is not allowed here';
    }
    if (program === 'git' && rest.includes('push')) {
      if (has(rest, 'f', '--force') || rest.some((word) => word.startsWith('+'))) {
        return 'a forced push is not allowed here';
      }
    }
  }
}

/** Says whether words have an option: one of its letters, alone or as in `-rf`, or its name. */
function has(words: string[], letters: string, name: string): boolean {
  return words.some((word) => {
    // `rm` and `git` also take the beginning of a name: `--recurs`.
    if (word.startsWith('--')) return word.length > 2 && name.startsWith(word);
    return word.startsWith('-') && [...letters].some((letter) => word.includes(letter));
  });
}

/** Returns the commands of a line, each as a list of words. */
function commands(line: string): string[][] {
  // A word with its quoted parts, or what stands between two commands.
  const token = /(?:[^\s;&|()`<>'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|[;&|()`<>\n]+/gs;
  // The shell reads `$'rm'` like `'rm'`.
  const text = line.replaceAll('\\\n', '').replace(/\$(?=['"])/g, '');
  if (text.replace(token, '').trim() !== '') throw new Error('the command has an open quote');
  const found: string[][] = [[]];
  for (const [word] of text.matchAll(token)) {
    if (/^[;&|()`\n]+$/.test(word)) found.push([]);
    else found.at(-1)!.push(...expanded(unquoted(word)));
  }
  for (const words of [...found]) {
    const hasShell = words.some((word) => SHELLS.includes(basename(word)));
    for (const word of words) {
      // In `sh -c '...'` and `"$(...)"`, one word holds a command line.
      if (word.includes('$(') || word.includes('`') || (hasShell && word.includes(' '))) {
        found.push(...commands(word));
      }
    }
  }
  return found;
}

/** Returns a word, and the words that the shell makes of `{rm,-rf}` and `-{r,f}`. */
function expanded(word: string): string[] {
  return word.includes('{') ? [word, ...word.split(/[{},]/)] : [word];
}

function unquoted(word: string): string {
  const quoted = /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs;
  return word.replace(quoted, (_, single, double, escaped) => {
    return single ?? double?.replace(/\\(.)/gs, '$1') ?? escaped;
  });
}

function basename(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1);
}
