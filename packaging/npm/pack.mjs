// Makes the packages for npm: `tenterhook`, and one per platform that carries the program.
//
//   node packaging/npm/pack.mjs --out DIR                                        # `tenterhook`
//   node packaging/npm/pack.mjs --out DIR --platform linux-x64 --program PATH    # `@tenterhook/linux-x64`
//
// `--repository URL` says where the sources are, which npm needs for a statement of provenance. Prints the path of the package that it made.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const MAIN = path.join(ROOT, 'sdk/javascript/tenterhook');
const LICENCES = ['LICENSE-MIT', 'LICENSE-APACHE'];
/** The rules for secrets that the program carries have a licence of their own. */
const RULES_LICENCE = 'crates/core/journal/src/rules/gitleaks.LICENSE';

/** An error that needs no stack. */
class Refused extends Error {}

function main() {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      platform: { type: 'string' },
      program: { type: 'string' },
      repository: { type: 'string' },
    },
  });
  if (!values.out || !values.platform !== !values.program) {
    throw new Refused('usage: pack.mjs --out DIR [--platform NAME --program PATH] [--repository URL]');
  }
  const manifest = JSON.parse(fs.readFileSync(path.join(MAIN, 'package.json'), 'utf8'));
  if (values.repository) manifest.repository = { type: 'git', url: `git+${values.repository}.git` };
  const stage = fs.mkdtempSync(path.join(os.tmpdir(), 'tenterhook-npm-'));
  try {
    for (const name of LICENCES) fs.copyFileSync(path.join(ROOT, name), path.join(stage, name));
    if (values.platform) stageProgram(stage, manifest, values);
    else stageMain(stage, manifest);
    fs.mkdirSync(values.out, { recursive: true });
    const printed = execFileSync('npm', ['pack', '--json', '--pack-destination', path.resolve(values.out)], {
      cwd: stage,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const packed = Object.values(JSON.parse(printed))[0];
    console.log(path.join(values.out, packed.filename.replace(/^@/, '').replace('/', '-')));
  } finally {
    fs.rmSync(stage, { recursive: true, force: true });
  }
}

function stageMain(stage, manifest) {
  for (const name of ['README.md', ...manifest.files]) fs.copyFileSync(path.join(MAIN, name), path.join(stage, name));
  writeManifest(stage, { ...manifest, files: [...manifest.files, ...LICENCES] });
}

function stageProgram(stage, manifest, { platform, program }) {
  const name = `@tenterhook/${platform}`;
  const known = Object.keys(manifest.optionalDependencies);
  if (!known.includes(name)) {
    const platforms = known.map((it) => it.replace('@tenterhook/', '')).join(', ');
    throw new Refused(`unknown platform \`${platform}\`; available: ${platforms}`);
  }
  // Coding agents start the shim, which is built with the program.
  const programs = [program, path.join(path.dirname(program), 'tenterhook-shim')];
  for (const built of programs) {
    if (!fs.statSync(built, { throwIfNoEntry: false })?.isFile()) {
      throw new Refused(`\`${built}\` is not a file; build the program first: cargo build --release -p tenterhook-cli`);
    }
  }
  const [system, cpu, libc] = platform.split('-');
  writeManifest(stage, {
    name,
    version: manifest.version,
    description: `The program of the package tenterhook for ${platform}.`,
    license: '(MIT OR Apache-2.0) AND MIT',
    ...(manifest.repository ? { repository: manifest.repository } : {}),
    os: [system],
    cpu: [cpu],
    ...(system === 'linux' ? { libc: [libc ?? 'glibc'] } : {}),
    files: ['bin/tenterhook', 'bin/tenterhook-shim', ...LICENCES, path.basename(RULES_LICENCE)],
    // Yarn would keep it in an archive, from which it cannot be run.
    preferUnplugged: true,
  });
  fs.writeFileSync(
    path.join(stage, 'README.md'),
    `The program of the package \`tenterhook\` for ${platform}. Install \`tenterhook\`, not this package.\n`,
  );
  fs.copyFileSync(path.join(ROOT, RULES_LICENCE), path.join(stage, path.basename(RULES_LICENCE)));
  fs.mkdirSync(path.join(stage, 'bin'));
  for (const [at, built] of programs.entries()) {
    const name = path.join(stage, 'bin', ['tenterhook', 'tenterhook-shim'][at]);
    fs.copyFileSync(built, name);
    fs.chmodSync(name, 0o755);
  }
}

function writeManifest(stage, manifest) {
  fs.writeFileSync(path.join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

try {
  main();
} catch (error) {
  if (!(error instanceof Refused) && !error.code?.startsWith?.('ERR_PARSE_ARGS')) throw error;
  console.error(`error: ${error.message}`);
  process.exitCode = 64;
}
