// Starts a program that serves a page and prints a link to it.

import { spawn } from 'node:child_process';

const LINK = /https?:\/\/\S+#code=[\w.~-]+/;
const START_DEADLINE = 30_000;

/** Starts a command and returns its process with the link that it prints. */
export function startServer([program, ...options]) {
  const server = spawn(program, options, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`${why}; output:\n${output}`));
    const timer = setTimeout(() => fail('the program printed no link'), START_DEADLINE);
    server.once('error', reject).once('exit', (code) => fail(`the program ended with status ${code}`));
    const read = (data) => {
      output += data;
      const link = LINK.exec(output)?.[0];
      if (!link) return;
      clearTimeout(timer);
      resolve({ server, link });
    };
    server.stdout.on('data', read);
    server.stderr.on('data', read);
  });
}
