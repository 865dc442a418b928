// Gives the terminal to programs that an extension starts while it has released the screen.
//
// The streams of the worker are not the terminal, so `stdio: 'inherit'` would not be the terminal either.

import childProcess from 'node:child_process';
import fs from 'node:fs';
import module from 'node:module';

const STARTS = ['spawn', 'spawnSync', 'execSync', 'execFileSync'];
/** Signals that the terminal sends to the worker too, because it is in the group of its programs. */
const SIGNALS = ['SIGINT', 'SIGQUIT', 'SIGTSTP'];
/** A stopped program could not be continued, because no shell is there to do it. */
const UNSTOPPABLE = ['/bin/sh', '-c', 'trap "" TSTP; exec "$0" "$@"'];

const isStream = (stream) => stream === 'inherit' || stream === 0 || stream === 1 || stream === 2;
const ignore = () => {};

/** Connects programs that inherit their streams to the terminal. Returns a function that undoes it. */
export function connectPrograms() {
  const terminal = fs.openSync('/dev/tty', 'r+');
  const before = Object.fromEntries(STARTS.map((name) => [name, childProcess[name]]));
  const write = process.stdout.write;
  process.stdout.write = (data) => fs.writeSync(terminal, data) >= 0;
  for (const signal of SIGNALS) process.on(signal, ignore);
  const connect = (functions) => {
    Object.assign(childProcess, functions);
    module.syncBuiltinESMExports();
  };
  connect(Object.fromEntries(STARTS.map((name) => [name, connected(before[name], name, terminal)])));
  return () => {
    connect(before);
    process.stdout.write = write;
    for (const signal of SIGNALS) process.off(signal, ignore);
    fs.closeSync(terminal);
  };
}

/** Returns a function that starts a program like `start`, but on the terminal. */
function connected(start, name, terminal) {
  return (...parameters) => {
    const at = parameters.findLastIndex((it) => typeof it === 'object' && it !== null && !Array.isArray(it));
    const options = parameters[at];
    const streams = typeof options?.stdio === 'string' ? Array(3).fill(options.stdio) : options?.stdio;
    if (!streams?.some?.(isStream)) return start(...parameters);
    const own = { ...options, stdio: streams.map((stream) => (isStream(stream) ? terminal : stream)) };
    const isProgram = name.startsWith('spawn') && !options.shell;
    if (!isProgram) return start(...parameters.slice(0, at), own);
    const [file, words] = parameters;
    const [shell, ...before] = UNSTOPPABLE;
    return start(shell, [...before, file, ...(Array.isArray(words) ? words : [])], own);
  };
}
