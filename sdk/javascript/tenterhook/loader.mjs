// How the modules of scripts are found and read. Runs on a thread of its own, beside the worker.

import fs from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

let own = {};
let instead = {};
let port;
const waiting = new Map();
let asked = 0;

export function initialize(data) {
  ({ own, instead, port } = data);
  port.on('message', ({ id, code, problem }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (problem === undefined) resolve(code);
    else reject(new SyntaxError(problem));
  });
}

/** Asks the worker for TypeScript without its types. */
function strip(path, text) {
  const id = (asked += 1);
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    port.postMessage({ id, path, text });
  });
}

const isRelative = (specifier) => /^\.{0,2}\//.test(specifier);

/** What a name may stand for besides itself: sources of TypeScript import each other by the names of what is made of them. */
function others(specifier) {
  const made = /\.([mc]?)js$/.exec(specifier);
  if (made) return [`${specifier.slice(0, made.index)}.${made[1]}ts`];
  return ['.ts', '.js', '.mjs', '/index.ts', '/index.js'].map((end) => specifier + end);
}

const NOT_THERE = ['ERR_MODULE_NOT_FOUND', 'ERR_UNSUPPORTED_DIR_IMPORT'];

async function find(specifier, context, next) {
  try {
    return await next(specifier, context);
  } catch (error) {
    if (!NOT_THERE.includes(error.code)) throw error;
    if (instead[specifier]) return { url: instead[specifier], shortCircuit: true };
    if (isRelative(specifier)) {
      for (const other of others(specifier)) {
        try {
          return await next(other, context);
        } catch (nested) {
          if (!NOT_THERE.includes(nested.code)) throw nested;
        }
      }
    }
    throw error;
  }
}

export async function resolve(specifier, context, next) {
  if (own[specifier]) return { url: own[specifier], shortCircuit: true };
  const found = await find(specifier, context, next);
  // What an extension loads is read again with it.
  const query = /\?load=\d+&api=pi$/.exec(context.parentURL ?? '')?.[0];
  if (query && isRelative(specifier) && found.url.startsWith('file:') && !found.url.includes('?')) found.url += query;
  return found;
}

const TYPED = /\.[mc]?ts$/;
const MODULE = /^\s*(?:import\b(?!\s*\()|export\b)/m;

/** What pi's loader gives modules that are not there otherwise. */
function surroundings(text, path) {
  const lacks = (name) => new RegExp(`\\b${name}\\b`).test(text) && !new RegExp(`\\b(?:const|let|var|function)\\s+\\{?[^=;]*\\b${name}\\b`).test(text);
  const directory = path.slice(0, path.lastIndexOf('/'));
  let given = '';
  if (lacks('__dirname')) given += `const __dirname = ${JSON.stringify(directory)}; `;
  if (lacks('__filename')) given += `const __filename = ${JSON.stringify(path)}; `;
  if (lacks('require')) given += `import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(${JSON.stringify(path)}); `;
  return given;
}

export async function load(url, context, next) {
  const isExtension = url.endsWith('&api=pi');
  const isTyped = TYPED.test(url.split('?', 1)[0]);
  if (!url.startsWith('file:') || !(isTyped || isExtension) || url.includes('/node_modules/')) return next(url, context);
  const path = fileURLToPath(url);
  const text = (await fs.readFile(path, 'utf8')).replace(/^#!/, '//');
  if (!isTyped && !MODULE.test(text)) return next(url, context);
  const code = isTyped ? await strip(path, text) : text;
  return { format: 'module', source: (isExtension ? surroundings(code, path) : '') + code, shortCircuit: true };
}
