// Finds and reads the modules of scripts, and limits the worker's memory. Runs in a separate thread, in parallel with the
// worker.

import fs from 'node:fs';
import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';

/** The addresses of the modules that this package always provides, by name. */
let own = {};
let port;
const waiting = new Map();
let asked = 0;

/** Other modules of this package: what the host sends under the name after this scheme. */
const OURS = 'tenterhook:';
/** Modules of this package that load an installed package. Only `resolve` creates such a name. */
const INSTALLED = `${OURS}pi/with/`;

export function initialize(data) {
  ({ own, port } = data);
  port.on('message', ({ id, result, problem, approved: copy, source, memory }) => {
    if (memory) return watchMemory(memory);
    if (source) return sources.set(source.path, source);
    if (copy) {
      approved.push(copy);
      return port.postMessage({ id, isKnown: true });
    }
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (problem === undefined) resolve(result);
    else reject(new SyntaxError(problem));
  });
}

/** The interval at which the memory is checked, in milliseconds. */
const MEMORY_LOOKS = 250;

/**
 * Ends the worker when it uses more memory than allowed. This thread looks, because a script that computes blocks the
 * other one. An option of the engine would not count buffers, and it would make every start a quarter slower: with such
 * an option, Node.js compiles its own modules again.
 */
function watchMemory(limit) {
  const look = () => {
    if (process.memoryUsage.rss() <= limit) return;
    fs.writeSync(2, `it used more than ${Math.floor(limit / 2 ** 20)} MiB of memory\n`);
    try {
      process.kill(-process.pid, 'SIGKILL');
    } finally {
      process.kill(process.pid, 'SIGKILL');
    }
  };
  setInterval(look, MEMORY_LOOKS).unref();
}

/** Sends a request to the host through the worker. */
function ask(method, params) {
  const id = (asked += 1);
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    port.postMessage({ id, method, params });
  });
}

const strip = async (path, text) => (await ask('source/strip', { path, text })).code;
/** The texts of the other modules of this package, which the host sends once. */
let texts;

async function ourSource(name) {
  texts ??= ask('source/modules', {}).then(({ modules }) => modules);
  const modules = await texts;
  if (!Object.hasOwn(modules, name)) throw new Error(`\`${name}\` is not a module of Tenterhook`);
  return modules[name];
}

const isRelative = (specifier) => /^\.{0,2}\//.test(specifier);
const isFile = (url) => url?.startsWith('file:');

/**
 * Returns other names that a module may have. TypeScript sources import each other by the names of their
 * compiled files.
 */
function others(specifier) {
  const made = /\.([mc]?)js$/.exec(specifier);
  if (made) return [`${specifier.slice(0, made.index)}.${made[1]}ts`];
  return ['.ts', '.js', '.mjs', '/index.ts', '/index.js'].map((end) => specifier + end);
}

const NOT_THERE = ['ERR_MODULE_NOT_FOUND', 'ERR_UNSUPPORTED_DIR_IMPORT'];

/** Returns what a function resolves to, or undefined if it finds no module. */
async function found(resolving) {
  try {
    return await resolving();
  } catch (error) {
    if (!NOT_THERE.includes(error.code)) throw error;
    return undefined;
  }
}

// Scripts of a project that run from a copy of the approved files.

const approved = [];
const isBelow = (path, folder) => path === folder || path.startsWith(`${folder}/`);

const isAbsolute = (specifier) => specifier.startsWith('/') || isFile(specifier);

/**
 * Returns the approved copy in which the importing module is, if what it imports is not part of it. A module may
 * import a file outside of the project only by its absolute path: Node.js looks for packages in every folder above the
 * copy, and anyone who can write there must not change an approved script.
 */
function leaves(specifier, url, parent) {
  if (!isFile(url) || !isFile(parent)) return undefined;
  const [from, to] = [parent, url].map((it) => fileURLToPath(it));
  const copy = approved.find(({ copies }) => isBelow(from, copies));
  const isLeft = copy && !isBelow(to, copy.copies) && (isBelow(to, copy.project) || !isAbsolute(specifier));
  return isLeft ? { copy, to } : undefined;
}

/** Refuses a file that the approval of the importing module does not cover. */
function checkApproval(specifier, url, parent) {
  const left = leaves(specifier, url, parent);
  if (left) throw notCovered(specifier, left.to, left.copy);
}

const notCovered = (specifier, path, { project }) => new Error(
  `\`${specifier}\` is ${isBelow(path, project) ? `\`${path.slice(project.length + 1)}\` of the project` : `\`${path}\``}, which the approval does not cover; `
    + 'install the package in the folder of the script, then run `tenterhook trust`',
);

/** Refuses a package that is missing in the copy but that the project has, wherever a link of the project leads. */
async function refuseMissingInCopy(specifier, parent, look) {
  if (!isFile(parent)) return;
  const from = fileURLToPath(parent);
  const copy = approved.find(({ copies }) => isBelow(from, copies));
  if (!copy) return;
  const there = await found(() => look(specifier, `file://${encodeURI(copy.project + from.slice(copy.copies.length))}`));
  if (there && isFile(there.url)) throw notCovered(specifier, fileURLToPath(there.url), copy);
}

/** Finds a module as the module at `parent` sees it. `look` does what Node.js does. */
async function find(specifier, parent, look) {
  const names = isRelative(specifier) ? [specifier, ...others(specifier)] : [specifier];
  for (const name of names) {
    const there = await found(() => look(name, parent));
    if (!there) continue;
    checkApproval(specifier, there.url, parent);
    return there;
  }
  if (!isRelative(specifier)) await refuseMissingInCopy(specifier, parent, look);
  // Repeated for its error.
  const there = await look(specifier, parent);
  checkApproval(specifier, there.url, parent);
  return there;
}

let standIns;

/** Returns the modules that replace packages that are not installed. Loaded when the first script needs them. */
function replacements() {
  standIns ??= loadStandIns();
  return standIns;
}

async function loadStandIns() {
  const text = await ourSource('stand-in.mjs');
  const loaded = await import(`data:text/javascript;base64,${Buffer.from(text).toString('base64')}`);
  await loaded.prepare(ourSource);
  return loaded;
}

/** How long the packages of a folder are remembered after the last import, in seconds. */
const BURST = 0.25;
let lastImport = 0;
/** The modules of packages, by their names and the folders of the importing modules. */
const packages = new Map();

/**
 * Returns the module that replaces or is the package of a name. Extensions that load one after another import the
 * same packages, and looking for one that is not installed takes long. A later load looks again.
 */
function packageOf(specifier, parent, find) {
  // The first use of `performance` takes longer than everything else here.
  const now = process.uptime();
  if (now - lastImport > BURST) packages.clear();
  lastImport = now;
  const key = `${specifier} ${parent?.slice(0, parent.lastIndexOf('/'))}`;
  if (!packages.has(key)) packages.set(key, replacements().then(({ resolve: replaced }) => replaced(specifier, find)));
  return packages.get(key);
}

const MAY_BE_REPLACED = /^(?:@[\w-]+\/(?:pi-|typebox)|typebox)/;

export async function resolve(specifier, context, next) {
  if (own[specifier]) return { url: own[specifier], shortCircuit: true };
  if (isBuiltin(specifier)) return { url: specifier.replace(/^(?!node:)/, 'node:'), format: 'builtin', shortCircuit: true };
  if (specifier.startsWith(INSTALLED)) throw new Error(`\`${specifier}\` is internal; import the package by its name`);
  if (specifier.startsWith(OURS)) return { url: specifier, shortCircuit: true };
  // Node.js writes what `next` is given into `context`, so the importing module is read once and given anew each time.
  const { parentURL: parent } = context;
  const look = (name, parentURL) => next(name, { ...context, parentURL });
  if (MAY_BE_REPLACED.test(specifier)) {
    const url = await packageOf(specifier, parent, (name, from = parent) => found(async () => {
      const there = await look(name, from);
      const left = leaves(name, there.url, parent);
      // What the project has is refused. What lies above the approved copy does not count as installed.
      if (left && isBelow(left.to, left.copy.project)) throw notCovered(name, left.to, left.copy);
      return left && from === parent ? undefined : there.url;
    }));
    if (url) return { url, shortCircuit: true };
  }
  const there = await find(specifier, parent, look);
  // Modules that an extension imports are reloaded together with it.
  const query = /\?load=\d+&api=pi$/.exec(parent ?? '')?.[0];
  if (query && isRelative(specifier) && isFile(there.url) && !there.url.includes('?')) there.url += query;
  return there;
}

const TYPED = /\.[mc]?ts$/;
const MODULE = /^\s*(?:import\b(?!\s*\()|export\b)/m;

/** Returns declarations of the variables that pi's loader provides and that modules do not have otherwise. */
function surroundings(text, path) {
  const lacks = (name) => new RegExp(`\\b${name}\\b`).test(text) && !new RegExp(`\\b(?:const|let|var|function)\\s+\\{?[^=;]*\\b${name}\\b`).test(text);
  const directory = path.slice(0, path.lastIndexOf('/'));
  let given = '';
  if (lacks('__dirname')) given += `const __dirname = ${JSON.stringify(directory)}; `;
  if (lacks('__filename')) given += `const __filename = ${JSON.stringify(path)}; `;
  if (lacks('require')) given += `import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(${JSON.stringify(path)}); `;
  return given;
}

/** Returns the text of a script, and its code without types. */
async function read(path) {
  const text = (await fs.promises.readFile(path, 'utf8')).replace(/^#!/, '//');
  return { text, code: TYPED.test(path) ? await strip(path, text) : text };
}

/** The sources without types that the host has read before the scripts are imported, by the paths of the scripts. */
const sources = new Map();

function versionOf(path) {
  const { ino, size, mtimeNs, ctimeNs } = fs.statSync(path, { bigint: true });
  return [ino, size, mtimeNs, ctimeNs].join();
}

/** Returns the code of a script that the host has read, unless the file has changed since. */
function readByHost(path) {
  const source = sources.get(path);
  sources.delete(path);
  return source?.version === versionOf(path) ? source.code : undefined;
}

/** Returns the text of a module of this package. */
async function loadOurs(name) {
  const { generated } = await replacements();
  return generated(name) ?? ourSource(name);
}

export async function load(url, context, next) {
  if (url.startsWith(OURS)) {
    return { format: 'module', source: await loadOurs(url.slice(OURS.length)), shortCircuit: true };
  }
  const isExtension = url.endsWith('&api=pi');
  const isTyped = TYPED.test(url.split('?', 1)[0]);
  if (!isFile(url) || !(isTyped || isExtension) || url.includes('/node_modules/')) return next(url, context);
  const path = fileURLToPath(url);
  let code = isTyped ? readByHost(path) : undefined;
  if (code === undefined) {
    const script = await read(path);
    if (!isTyped && !MODULE.test(script.text)) return next(url, context);
    ({ code } = script);
  }
  return { format: 'module', source: (isExtension ? surroundings(code, path) : '') + code, shortCircuit: true };
}
