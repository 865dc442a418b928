// pi's tools, as extensions create them: to offer them again under the same name, to change what they
// do, or to run them elsewhere. They work on real files and processes.

import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { access, mkdir, open, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import { editsOf, generateDiffString, replaced } from 'tenterhook:pi/edit.mjs';
import {
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_LINES,
  formatSize,
  GREP_MAX_LINE_LENGTH,
  truncateHead,
  truncateLine,
  truncateTail,
} from 'tenterhook:pi/truncate.mjs';
import { Type } from 'tenterhook:pi/typebox.mjs';

const text = (content, details) => ({ content: [{ type: 'text', text: content }], details });
const optional = (schema) => Type.Optional(schema);
const string = (description) => Type.String({ description });
const number = (description) => Type.Number({ description });
const LIMITS = `${DEFAULT_MAX_LINES} lines or ${DEFAULT_MAX_BYTES / 1024}KB`;

/** Returns the absolute path that a model means. */
function resolveToCwd(given, cwd) {
  const name = given.replace(/^@/, '').replace(/[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g, ' ');
  return path.resolve(cwd, name.replace(/^~(?=\/|$)/, os.homedir()));
}

/** Waits for work. Fails when the call is cancelled; the rest of the work is then ignored. */
async function unlessAborted(signal, work) {
  if (signal?.aborted) throw new Error('Operation aborted');
  let onAbort;
  const aborted = new Promise((_, reject) => {
    onAbort = () => reject(new Error('Operation aborted'));
    signal?.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** Makes a tool. `run` gets the arguments and what the caller passes on. */
const tool = (name, description, parameters, run) => ({
  name,
  label: name,
  description,
  parameters: Type.Object(parameters),
  execute: (_id, input, signal, onUpdate, ctx) => run(input, signal, onUpdate, ctx),
});

// One change of a file after another.

const queues = new Map();

/** Runs work on a file after all earlier work on the same file. */
export async function withFileMutationQueue(file, work) {
  let key = path.resolve(file);
  try {
    key = fs.realpathSync.native(key);
  } catch {
    // The file does not exist yet.
  }
  const before = queues.get(key);
  const done = (async () => {
    await before?.catch(() => {});
    return work();
  })();
  queues.set(key, done);
  try {
    return await done;
  } finally {
    if (queues.get(key) === done) queues.delete(key);
  }
}

// bash

/** Returns the shell that runs commands, and its arguments before the command. */
export const getShellConfig = () => ({ shell: fs.existsSync('/bin/bash') ? '/bin/bash' : 'sh', args: ['-c'] });

function killGroup(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group has already ended.
  }
}

/** Returns operations that run commands on this machine. */
export const createLocalBashOperations = () => ({
  exec: (command, cwd, { onData, signal, timeout, env }) =>
    new Promise((resolve, reject) => {
      if (!fs.existsSync(cwd))
        return reject(new Error(`Working directory does not exist: ${cwd}\nCannot execute bash commands.`));
      const { shell, args } = getShellConfig();
      const child = spawn(shell, [...args, command], {
        cwd,
        // Programs can tell that an agent runs them.
        env: { ...(env ?? process.env), TENTERHOOK_AGENT: '1' },
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let isLate = false;
      const timer =
        timeout > 0 &&
        setTimeout(() => {
          isLate = true;
          killGroup(child);
        }, timeout * 1000);
      const onAbort = () => killGroup(child);
      const settle = (end) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        end();
      };
      child.stdout.on('data', onData);
      child.stderr.on('data', onData);
      child.on('error', (error) => settle(() => reject(error)));
      child.on('close', (exitCode) =>
        settle(() => {
          if (signal?.aborted) reject(new Error('aborted'));
          else if (isLate) reject(new Error(`timeout:${timeout}`));
          else resolve({ exitCode });
        }),
      );
      if (signal?.aborted) onAbort();
      else signal?.addEventListener('abort', onAbort, { once: true });
    }),
});

/** Keeps the end of the output of a command. A long output is also written to a file. */
class CommandOutput {
  #chunks = [];
  #kept = 0;
  #total = 0;
  #lines = 0;
  #file;
  path;

  add(data) {
    this.#total += data.length;
    for (const byte of data) if (byte === 10) this.#lines += 1;
    if (!this.#file && (this.#total > DEFAULT_MAX_BYTES || this.#lines > DEFAULT_MAX_LINES)) {
      this.path = path.join(os.tmpdir(), `pi-bash-${randomBytes(8).toString('hex')}.log`);
      this.#file = fs.openSync(this.path, 'wx', 0o600);
      for (const chunk of this.#chunks) fs.writeSync(this.#file, chunk);
    }
    if (this.#file) fs.writeSync(this.#file, data);
    this.#chunks.push(data);
    this.#kept += data.length;
    while (this.#kept > 2 * DEFAULT_MAX_BYTES && this.#chunks.length > 1) this.#kept -= this.#chunks.shift().length;
  }
  get text() {
    return Buffer.concat(this.#chunks).toString();
  }
  close() {
    if (this.#file) fs.closeSync(this.#file);
  }
}

/** Describes which part of an output is shown. */
function shownPart(truncation, whole, file) {
  const { totalLines, outputLines, outputBytes, lastLinePartial, truncatedBy } = truncation;
  const rest = `Full output: ${file}]`;
  if (lastLinePartial) {
    const size = formatSize(Buffer.byteLength(whole.slice(whole.lastIndexOf('\n') + 1)));
    return `\n\n[Showing last ${formatSize(outputBytes)} of line ${totalLines} (line is ${size}). ${rest}`;
  }
  const limit = truncatedBy === 'bytes' ? ` (${formatSize(DEFAULT_MAX_BYTES)} limit)` : '';
  return `\n\n[Showing lines ${totalLines - outputLines + 1}-${totalLines} of ${totalLines}${limit}. ${rest}`;
}

export function createBashTool(cwd, { operations = createLocalBashOperations(), commandPrefix, spawnHook } = {}) {
  const parameters = {
    command: string('Bash command to execute'),
    timeout: optional(number('Timeout in seconds (optional, no default timeout)')),
  };
  const description =
    `Run a bash command in the working directory. Returns stdout and stderr, cut to the last ${LIMITS}. ` +
    'If the output is cut, all of it is kept in a file.';
  return tool('bash', description, parameters, async ({ command, timeout }, signal, onUpdate) => {
    const given = { command: commandPrefix ? `${commandPrefix}\n${command}` : command, cwd, env: { ...process.env } };
    const start = spawnHook ? spawnHook(given) : given;
    const output = new CommandOutput();
    const onData = (data) => {
      output.add(Buffer.from(data));
      if (!onUpdate) return;
      const truncation = truncateTail(output.text);
      onUpdate(
        text(truncation.content, {
          truncation: truncation.truncated ? truncation : undefined,
          fullOutputPath: output.path,
        }),
      );
    };
    let ended;
    try {
      ended = await operations.exec(start.command, start.cwd, { onData, signal, timeout, env: start.env });
    } catch (error) {
      const [, seconds] = /^timeout:(.*)$/.exec(error.message) ?? [];
      const why = seconds
        ? `Command timed out after ${seconds} seconds`
        : error.message === 'aborted'
          ? 'Command aborted'
          : undefined;
      if (!why) throw error;
      throw new Error([output.text, why].filter(Boolean).join('\n\n'));
    } finally {
      output.close();
    }
    const whole = output.text;
    const truncation = truncateTail(whole);
    let shown = truncation.content || '(no output)';
    if (truncation.truncated) shown += shownPart(truncation, whole, output.path);
    if (ended.exitCode) throw new Error(`${shown}\n\nCommand exited with code ${ended.exitCode}`);
    return text(shown, truncation.truncated ? { truncation, fullOutputPath: output.path } : undefined);
  });
}

// read

/** The first bytes of the images that models can see. */
const IMAGES = [
  ['image/png', (bytes) => bytes.subarray(0, 4).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47]))],
  ['image/jpeg', (bytes) => bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff],
  ['image/gif', (bytes) => bytes.toString('latin1', 0, 4) === 'GIF8'],
  ['image/webp', (bytes) => bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP'],
];

/** Returns the media type of an image, or null for other files. */
export async function detectSupportedImageMimeTypeFromFile(file) {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(16), 0, 16, 0);
    const start = buffer.subarray(0, bytesRead);
    return IMAGES.find(([, is]) => is(start))?.[0] ?? null;
  } finally {
    await handle.close();
  }
}

const LOCAL_READ = {
  readFile: (file) => readFile(file),
  access: (file) => access(file, fs.constants.R_OK),
  detectImageMimeType: detectSupportedImageMimeTypeFromFile,
};

function readText(content, given, offset, limit) {
  const lines = content.split('\n');
  const start = offset ? Math.max(0, offset - 1) : 0;
  if (start >= lines.length) throw new Error(`Offset ${offset} is beyond end of file (${lines.length} lines total)`);
  const end = limit === undefined ? lines.length : Math.min(start + limit, lines.length);
  const truncation = truncateHead(lines.slice(start, end).join('\n'));
  if (truncation.firstLineExceedsLimit) {
    const size = formatSize(Buffer.byteLength(lines[start]));
    const hint = `Use bash: sed -n '${start + 1}p' ${given} | head -c ${DEFAULT_MAX_BYTES}`;
    return text(`[Line ${start + 1} is ${size}, exceeds ${formatSize(DEFAULT_MAX_BYTES)} limit. ${hint}]`, {
      truncation,
    });
  }
  if (truncation.truncated) {
    const last = start + truncation.outputLines;
    const why = truncation.truncatedBy === 'bytes' ? ` (${formatSize(DEFAULT_MAX_BYTES)} limit)` : '';
    const note = `[Showing lines ${start + 1}-${last} of ${lines.length}${why}. Use offset=${last + 1} to continue.]`;
    return text(`${truncation.content}\n\n${note}`, { truncation });
  }
  const left = lines.length - end;
  return text(
    left > 0
      ? `${truncation.content}\n\n[${left} more lines in file. Use offset=${end + 1} to continue.]`
      : truncation.content,
  );
}

export function createReadTool(cwd, { operations = LOCAL_READ } = {}) {
  const parameters = {
    path: string('Path to the file to read (relative or absolute)'),
    offset: optional(number('Line number to start reading from (1-indexed)')),
    limit: optional(number('Maximum number of lines to read')),
  };
  const description = `Read a text file or an image (jpg, png, gif, webp). Text is cut to the first ${LIMITS}; continue with offset.`;
  return tool('read', description, parameters, ({ path: given, offset, limit }, signal) =>
    unlessAborted(signal, async () => {
      const file = resolveToCwd(given, cwd);
      await operations.access(file);
      const mimeType = await operations.detectImageMimeType?.(file);
      const bytes = await operations.readFile(file);
      if (!mimeType) return readText(Buffer.from(bytes).toString(), given, offset, limit);
      const image = { type: 'image', data: Buffer.from(bytes).toString('base64'), mimeType };
      return { content: [{ type: 'text', text: `Read image file [${mimeType}]` }, image], details: undefined };
    }),
  );
}

// write and edit

const LOCAL_WRITE = {
  writeFile: (file, content) => writeFile(file, content),
  mkdir: (folder) => mkdir(folder, { recursive: true }),
};

export function createWriteTool(cwd, { operations = LOCAL_WRITE } = {}) {
  const parameters = {
    path: string('Path to the file to write (relative or absolute)'),
    content: string('Content to write to the file'),
  };
  const description = 'Write a file. Replaces it if it exists, and creates missing folders.';
  return tool('write', description, parameters, ({ path: given, content }, signal) =>
    unlessAborted(signal, () => {
      const file = resolveToCwd(given, cwd);
      return withFileMutationQueue(file, async () => {
        await operations.mkdir(path.dirname(file));
        if (signal?.aborted) throw new Error('Operation aborted');
        await operations.writeFile(file, content);
        return text(`Successfully wrote ${content.length} bytes to ${given}`);
      });
    }),
  );
}

const LOCAL_EDIT = {
  readFile: (file) => readFile(file),
  writeFile: LOCAL_WRITE.writeFile,
  access: (file) => access(file, fs.constants.R_OK | fs.constants.W_OK),
};

export function createEditTool(cwd, { operations = LOCAL_EDIT } = {}) {
  const parameters = {
    path: string('Path to the file to edit (relative or absolute)'),
    oldText: string('Exact text to find and replace (must match exactly)'),
    newText: string('New text to replace the old text with'),
  };
  const description = 'Replace a text in a file. The old text has to occur exactly once.';
  return tool('edit', description, parameters, (input, signal) =>
    unlessAborted(signal, () => {
      const file = resolveToCwd(input.path, cwd);
      return withFileMutationQueue(file, async () => {
        try {
          await operations.access(file);
        } catch {
          throw new Error(`File not found: ${input.path}`);
        }
        const before = Buffer.from(await operations.readFile(file)).toString();
        const { content, from, to } = replaced(before, editsOf(input), input.path);
        if (signal?.aborted) throw new Error('Operation aborted');
        await operations.writeFile(file, content);
        return text(`Successfully replaced text in ${input.path}.`, generateDiffString(from, to));
      });
    }),
  );
}

// grep, find and ls

/** Adds notes to an output about the parts that are missing. */
function noted(lines, notes, details) {
  const truncation = truncateHead(lines.join('\n'), { maxLines: Number.MAX_SAFE_INTEGER });
  if (truncation.truncated) {
    notes.push(`${formatSize(DEFAULT_MAX_BYTES)} limit reached`);
    details.truncation = truncation;
  }
  const note = notes.length > 0 ? `\n\n[${notes.join('. ')}]` : '';
  return text(truncation.content + note, Object.keys(details).length > 0 ? details : undefined);
}

/** The maximum output of git that is read, in bytes. */
const MAX_OUTPUT = 16 << 20;

/** Runs git and returns its output. `accepted` lists exit statuses other than 0 that count as success. */
function git(args, cwd, signal, accepted = []) {
  return new Promise((resolve, reject) => {
    execFile('git', args, { cwd, signal, maxBuffer: MAX_OUTPUT, encoding: 'utf8' }, (error, stdout, stderr) => {
      const isCut = error?.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER';
      if (!error || isCut || accepted.includes(error.code)) return resolve(stdout);
      if (error.code === 'ENOENT')
        return reject(new Error('`git` was not found in `PATH`; the tool uses it to search'));
      reject(signal?.aborted ? new Error('Operation aborted') : new Error(stderr.trim() || error.message));
    });
  });
}

/** Finds lines. Returns the name, number and text of each, and whether it matches or is context. */
async function search(place, isDirectory, input, signal) {
  const { pattern, glob, ignoreCase, literal, context } = input;
  const [cwd, only] = isDirectory
    ? [place, glob ? `:(glob)${glob.includes('/') ? '' : '**/'}${glob}` : '.']
    : [path.dirname(place), path.basename(place)];
  const args = [
    'grep',
    '--no-index',
    '--exclude-standard',
    '--no-color',
    '--heading',
    '--break',
    '-nI',
    literal ? '-F' : '-E',
  ];
  if (ignoreCase) args.push('-i');
  if (context > 0) args.push(`-C${Math.floor(context)}`);
  const output = await git([...args, '-e', pattern, '--', only], cwd, signal, [1]);
  // A file begins with its name, and an empty line precedes each file but the first.
  return output.split(/\n\n/).flatMap((file) => {
    const [name, ...lines] = file.split('\n');
    return lines.flatMap((line) => {
      const [, at, kind, rest] = /^(\d+)([:-])(.*)$/s.exec(line) ?? [];
      return at ? [{ name, number: at, isMatch: kind === ':', rest }] : [];
    });
  });
}

export function createGrepTool(cwd, { operations } = {}) {
  const most = 100;
  const parameters = {
    pattern: string('Search pattern (regex or literal string)'),
    path: optional(string('Directory or file to search (default: current directory)')),
    glob: optional(string("Filter files by glob pattern, e.g. '*.ts' or '**/*.spec.ts'")),
    ignoreCase: optional(Type.Boolean({ description: 'Case-insensitive search (default: false)' })),
    literal: optional(
      Type.Boolean({ description: 'Treat pattern as literal string instead of regex (default: false)' }),
    ),
    context: optional(number('Number of lines to show before and after each match (default: 0)')),
    limit: optional(number(`Maximum number of matches to return (default: ${most})`)),
  };
  const description = `Search the contents of files. Returns matching lines with the file and the line number, at most ${most} of them. Respects .gitignore.`;
  return tool('grep', description, parameters, (input, signal) =>
    unlessAborted(signal, async () => {
      const place = resolveToCwd(input.path || '.', cwd);
      let isDirectory;
      try {
        isDirectory = operations ? await operations.isDirectory(place) : (await stat(place)).isDirectory();
      } catch {
        throw new Error(`Path not found: ${place}`);
      }
      const limit = Math.max(1, input.limit ?? most);
      const [lines, details] = [[], {}];
      let matches = 0;
      for (const { name, number: at, isMatch, rest } of await search(place, isDirectory, input, signal)) {
        if (isMatch && matches === limit) {
          details.matchLimitReached = limit;
          break;
        }
        if (isMatch) matches += 1;
        const line = truncateLine(rest.replaceAll('\r', ''));
        if (line.wasTruncated) details.linesTruncated = true;
        lines.push(isMatch ? `${name}:${at}: ${line.text}` : `${name}-${at}- ${line.text}`);
      }
      if (matches === 0) return text('No matches found');
      const notes = [];
      if (details.matchLimitReached)
        notes.push(`${limit} matches limit reached. Use limit=${limit * 2} for more, or refine pattern`);
      if (details.linesTruncated)
        notes.push(`Some lines truncated to ${GREP_MAX_LINE_LENGTH} chars. Use read tool to see full lines`);
      return noted(lines, notes, details);
    }),
  );
}

/** Returns an expression for the paths that a glob matches. */
function globExpression(glob) {
  const parts = glob.split(/(\*\*\/|\*\*|\*|\?|\{[^}]*\})/).map((part) => {
    if (part === '**/') return '(?:[^/]+/)*';
    if (part === '**') return '.*';
    if (part === '*') return '[^/]*';
    if (part === '?') return '[^/]';
    const escaped = (words) => words.replace(/[.+^$()|[\]\\{}]/g, '\\$&');
    return part.startsWith('{') ? `(?:${part.slice(1, -1).split(',').map(escaped).join('|')})` : escaped(part);
  });
  return new RegExp(`^${glob.includes('/') ? '' : '(?:.*/)?'}${parts.join('')}$`);
}

/** The maximum number of files that are examined. */
const MAX_FILES = 100_000;

/** Returns the files below a folder: in a repository, those that git does not ignore. */
async function filesBelow(folder, signal) {
  try {
    const listed = await git(['ls-files', '-z', '--cached', '--others', '--exclude-standard'], folder, signal);
    return [...new Set(listed.split('\0').filter(Boolean))];
  } catch (error) {
    if (signal?.aborted) throw error;
  }
  const files = [];
  const folders = [''];
  while (folders.length > 0 && files.length < MAX_FILES) {
    const at = folders.pop();
    for (const entry of await readdir(path.join(folder, at), { withFileTypes: true }).catch(() => [])) {
      const name = at ? `${at}/${entry.name}` : entry.name;
      if (!entry.isDirectory()) files.push(name);
      else if (!['node_modules', '.git'].includes(entry.name)) folders.push(name);
    }
  }
  return files;
}

export function createFindTool(cwd, { operations } = {}) {
  const most = 1000;
  const parameters = {
    pattern: string("Glob pattern to match files, e.g. '*.ts', '**/*.json', or 'src/**/*.spec.ts'"),
    path: optional(string('Directory to search in (default: current directory)')),
    limit: optional(number(`Maximum number of results (default: ${most})`)),
  };
  const description = `Find files by a glob pattern. Returns paths relative to the folder, at most ${most} of them. Respects .gitignore.`;
  return tool('find', description, parameters, ({ pattern, path: given, limit = most }, signal) =>
    unlessAborted(signal, async () => {
      const folder = resolveToCwd(given || '.', cwd);
      const exists = operations?.exists ?? fs.existsSync;
      if (!(await exists(folder))) throw new Error(`Path not found: ${folder}`);
      const ignore = ['**/node_modules/**', '**/.git/**'];
      const is = globExpression(pattern);
      const found = operations?.glob
        ? (await operations.glob(pattern, folder, { ignore, limit })).map((file) =>
            path.isAbsolute(file) ? path.relative(folder, file) : file,
          )
        : (await filesBelow(folder, signal)).filter((file) => is.test(file)).sort();
      if (found.length === 0) return text('No files found matching pattern');
      const isCut = operations?.glob ? found.length >= limit : found.length > limit;
      const notes = isCut
        ? [`${limit} results limit reached. Use limit=${limit * 2} for more, or refine pattern`]
        : [];
      return noted(found.slice(0, limit), notes, isCut ? { resultLimitReached: limit } : {});
    }),
  );
}

const LOCAL_LIST = { exists: fs.existsSync, stat, readdir };

export function createLsTool(cwd, { operations = LOCAL_LIST } = {}) {
  const most = 500;
  const parameters = {
    path: optional(string('Directory to list (default: current directory)')),
    limit: optional(number(`Maximum number of entries to return (default: ${most})`)),
  };
  const description = `List a folder: sorted, with / after folders and with dotfiles, at most ${most} entries.`;
  return tool('ls', description, parameters, ({ path: given, limit = most }, signal) =>
    unlessAborted(signal, async () => {
      const folder = resolveToCwd(given || '.', cwd);
      if (!(await operations.exists(folder))) throw new Error(`Path not found: ${folder}`);
      if (!(await operations.stat(folder)).isDirectory()) throw new Error(`Not a directory: ${folder}`);
      const names = [...(await operations.readdir(folder))].sort((one, other) =>
        one.toLowerCase().localeCompare(other.toLowerCase()),
      );
      const lines = [];
      for (const name of names.slice(0, limit)) {
        try {
          lines.push((await operations.stat(path.join(folder, name))).isDirectory() ? `${name}/` : name);
        } catch {
          // It vanished, or it is a broken link.
        }
      }
      if (lines.length === 0) return text('(empty directory)');
      const isCut = names.length > limit;
      const notes = isCut ? [`${limit} entries limit reached. Use limit=${limit * 2} for more`] : [];
      return noted(lines, notes, isCut ? { entryLimitReached: limit } : {});
    }),
  );
}

// Sets of tools

const own = (options, name) => options?.[name];
export const createCodingTools = (cwd, options) => [
  createReadTool(cwd, own(options, 'read')),
  createBashTool(cwd, own(options, 'bash')),
  createEditTool(cwd, own(options, 'edit')),
  createWriteTool(cwd, own(options, 'write')),
];
export const createReadOnlyTools = (cwd, options) => [
  createReadTool(cwd, own(options, 'read')),
  createGrepTool(cwd, own(options, 'grep')),
  createFindTool(cwd, own(options, 'find')),
  createLsTool(cwd, own(options, 'ls')),
];

// The form in which tools are registered. It is the same here.
export {
  createBashTool as createBashToolDefinition,
  createEditTool as createEditToolDefinition,
  createFindTool as createFindToolDefinition,
  createGrepTool as createGrepToolDefinition,
  createLsTool as createLsToolDefinition,
  createReadTool as createReadToolDefinition,
  createWriteTool as createWriteToolDefinition,
};

export const readTool = createReadTool(process.cwd());
export const bashTool = createBashTool(process.cwd());
export const editTool = createEditTool(process.cwd());
export const writeTool = createWriteTool(process.cwd());
export const grepTool = createGrepTool(process.cwd());
export const findTool = createFindTool(process.cwd());
export const lsTool = createLsTool(process.cwd());
export const codingTools = [readTool, bashTool, editTool, writeTool];
export const readOnlyTools = [readTool, grepTool, findTool, lsTool];
