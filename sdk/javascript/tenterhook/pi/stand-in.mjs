// Decides which module an extension of pi gets when it imports one of pi's packages: the installed
// package, or the stand-in of this one. Runs in the thread of the loader.

import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** pi has published its packages under two names. Whichever is installed serves both. */
const SCOPES = ['@mariozechner', '@earendil-works'];
/** The packages of which all parts have a stand-in, and the modules that implement them. */
const MODULES = {
  'pi-coding-agent': 'pi/coding-agent.mjs',
  'pi-tui': 'pi/tui.mjs',
  'pi-ai': 'pi/ai.mjs',
  'pi-agent-core': 'pi/agent-core.mjs',
  typebox: 'pi/typebox.mjs',
};
/** The package whose installed version is combined with functions that have to be ours. */
const HOST = 'pi-coding-agent';
/** The part of the name of a generated module that precedes the address of an installed package. */
const WITH = 'pi/with/';

/** The functions that have to be ours: they know how events look here. */
const OURS_ALWAYS = [
  'isToolCallEventType',
  'isBashToolResult',
  'isReadToolResult',
  'isEditToolResult',
  'isWriteToolResult',
  'isGrepToolResult',
  'isFindToolResult',
  'isLsToolResult',
];

let names;

/** Reads the names that the packages export. */
export async function prepare(read) {
  names = JSON.parse(await read('pi/names.json')).packages;
}

/** Returns the name of a part of a package in the table of names, and all names under which it may be installed. */
function known(specifier) {
  const scoped = /^(@[^/]+)\/(pi-[^/]+)(\/.*)?$/.exec(specifier);
  if (scoped && SCOPES.includes(scoped[1])) {
    const part = scoped[2] + (scoped[3] ?? '');
    if (!names[part]) return undefined;
    const [first, ...rest] = [scoped[1], ...SCOPES.filter((scope) => scope !== scoped[1])];
    return { part, installed: [first, ...rest].map((scope) => `${scope}/${part}`) };
  }
  const part = specifier.replace(/^@sinclair\//, '');
  return /^typebox(?:\/|$)/.test(part) && names[part] ? { part, installed: [specifier] } : undefined;
}

/** The folder that an agent may write to: the repository that the worker runs in, or the working folder. */
const PROJECT = projectFolder(fs.realpathSync(process.cwd()));

function projectFolder(start) {
  for (let at = start; ; at = path.dirname(at)) {
    if (fs.existsSync(path.join(at, '.git'))) return at;
    if (at === path.dirname(at)) return start;
  }
}

const isOfProject = (file) => !/^\.\.(?:\/|$)/.test(path.relative(PROJECT, file));

/**
 * Returns the folder of the package that the program `pi` on `PATH` belongs to. Files of the project need an
 * approval, so no folder and no link on `PATH` may lead to them.
 */
function globalPackage() {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    if (!path.isAbsolute(folder) || folder.includes('/node_modules/')) continue;
    let at;
    try {
      at = path.dirname(fs.realpathSync(path.join(folder, 'pi')));
      if (isOfProject(fs.realpathSync(folder)) || isOfProject(at)) continue;
    } catch {
      continue;
    }
    for (; at !== path.dirname(at); at = path.dirname(at)) {
      try {
        const { name } = JSON.parse(fs.readFileSync(path.join(at, 'package.json'), 'utf8'));
        if (SCOPES.some((scope) => name === `${scope}/${HOST}`)) return at;
      } catch {
        // There is no package here; look in the folder above.
      }
    }
  }
  return undefined;
}

let globalParent;

/** Returns the address of a module that sees the packages of the global installation of pi, or null. */
function globalInstallation() {
  if (globalParent === undefined) {
    const folder = globalPackage();
    globalParent = folder ? pathToFileURL(path.join(folder, 'index.js')).href : null;
  }
  return globalParent;
}

/**
 * Returns the address of the module for an import, or undefined if it is not an import of pi's
 * packages. `find` returns the address of an installed module, as the importing module or another
 * one sees it.
 */
export async function resolve(specifier, find) {
  const asked = known(specifier);
  if (!asked) return undefined;
  for (const name of asked.installed) {
    const there = await find(name);
    if (there) return combined(asked.part, there);
  }
  const parent = globalInstallation();
  for (const name of parent ? asked.installed : []) {
    const there = await find(name, parent);
    if (there && !isOfProject(fileURLToPath(there))) return combined(asked.part, there);
  }
  return `tenterhook:pi/package/${asked.part}`;
}

const combined = (part, url) => (part === HOST ? `tenterhook:${WITH}${url}` : url);

/** Returns the text of a generated module, or undefined if the name is not one of them. */
export function generated(name) {
  if (name.startsWith(WITH)) {
    const url = JSON.stringify(name.slice(WITH.length));
    return [
      // Without a theme, the package's functions that style text fail.
      `import * as real from ${url};`,
      'try { real.initTheme?.("dark", false); } catch (error) { console.error(error); }',
      // A name that a module exports itself takes precedence over the same name behind a star.
      `export * from ${url};`,
      `export { ${OURS_ALWAYS.join(', ')} } from 'tenterhook:pi/events.mjs';`,
    ].join('\n');
  }
  if (!name.startsWith('pi/package/')) return undefined;
  const part = name.slice('pi/package/'.length);
  const of = part.split('/', 1)[0];
  const lines = [
    `import * as module from 'tenterhook:${MODULES[of]}';`,
    "import { missing } from 'tenterhook:pi/missing.mjs';",
    `const value = (name) => (name in module ? module[name] : missing(${JSON.stringify(part)}, name));`,
  ];
  lines.push(...names[part].names.map((it) => `export const ${it} = value('${it}');`));
  if (part === 'typebox') lines.push('export { default } from "tenterhook:pi/typebox.mjs";');
  if (part === HOST) lines.push("export * from 'tenterhook:pi/type-names.mjs';");
  return lines.join('\n');
}
