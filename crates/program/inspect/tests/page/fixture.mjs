// A small server that speaks the protocol of the inspector, for tests of the page without the program.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../../src/page/', import.meta.url));
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const MEDIA = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const MAX_PAGE = 50_000;

export class Fixture {
  /** The position of the first record that is kept. Positions begin at 1. */
  first = 1;
  hooks = null;
  gateway = null;
  details = new Map();
  decisions = [];
  /** A status that every request is refused with, or `null`. */
  refusal = null;
  isDown = false;
  #streams = new Set();

  constructor({ records = [], kind = 'gateway', payloads = true }) {
    Object.assign(this, { records, kind, payloads, isLive: kind !== 'files' });
    this.lines = records.map((record) => JSON.stringify(record));
  }

  async start() {
    this.server = createServer((request, response) =>
      this.#answer(request, response).catch((error) => {
        response.writeHead(500).end(String(error));
      }),
    );
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}/inspect/`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  get last() {
    return this.first - 1 + this.lines.length;
  }

  /** Adds records, and sends them to everyone who follows. */
  add(records) {
    for (const record of records) {
      this.lines.push(JSON.stringify(record));
      for (const stream of this.#streams) this.#send(stream, this.last);
    }
  }

  /** Forgets the oldest records, as a full ring does. */
  forget(count) {
    this.lines.splice(0, count);
    this.first += count;
  }

  /** Ends all streams and refuses connections, until it is called with `false`. */
  setDown(isDown) {
    this.isDown = isDown;
    if (!isDown) return;
    for (const stream of this.#streams) stream.destroy();
    this.#streams.clear();
  }

  #send(stream, position) {
    stream.write(`id: ${position}\nevent: record\ndata: ${this.lines[position - this.first]}\n\n`);
  }

  async #answer(request, response) {
    if (this.isDown) return request.socket.destroy();
    const { pathname, searchParams } = new URL(request.url, 'http://127.0.0.1');
    if (!pathname.startsWith('/v1/inspect/')) return this.#file(pathname, response);
    const json = (status, value) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (this.refusal) return json(this.refusal, { error: 'refused by the test' });
    if (!request.headers['x-tenterhook']) return json(401, { error: 'the page sent no key' });
    const [what, ...rest] = pathname.slice('/v1/inspect/'.length).split('/').map(decodeURIComponent);
    if (request.method === 'POST') return this.#decide(request, [what, ...rest], json);
    switch (what) {
      case 'source':
        return json(200, this.#source());
      case 'records':
        return this.#records(searchParams, response);
      case 'events':
        return this.#events(request, searchParams, response);
      case 'hooks':
        return this.hooks ? json(200, this.hooks) : json(404, { error: 'not known' });
      case 'gateway':
        return this.gateway ? json(200, this.gateway) : json(404, { error: 'not known' });
      case 'dispatches':
        return this.details.has(rest[0]) ? json(200, this.details.get(rest[0])) : json(404, { error: 'not kept' });
      default:
        return json(404, { error: 'not found' });
    }
  }

  #source() {
    const files = this.kind === 'files' ? ['/home/you/.local/state/tenterhook/journal/2026-11-23.jsonl'] : [];
    const kept = { records: this.lines.length, limit: 100_000 };
    return { live: this.isLive, kind: this.kind, files, payloads: this.payloads, version: '0.1.0', kept };
  }

  #records(parameters, response) {
    const after = Math.max(Number(parameters.get('after') ?? 0), this.first - 1);
    const limit = Math.min(Number(parameters.get('limit') ?? MAX_PAGE), MAX_PAGE);
    const lines = this.lines.slice(after - this.first + 1, after - this.first + 1 + limit);
    response.writeHead(200, {
      'content-type': 'application/x-ndjson',
      'tenterhook-position': after + lines.length,
      'tenterhook-first': this.first,
      'tenterhook-skipped': 0,
    });
    response.end(lines.map((line) => `${line}\n`).join(''));
  }

  #events(request, parameters, response) {
    let after = Number(request.headers['last-event-id'] ?? parameters.get('after') ?? this.last);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': keep-alive\n\n');
    const isForeign = after > this.last;
    if (isForeign || after < this.first - 1) {
      const gap = { first: this.first, missed: isForeign ? null : this.first - 1 - after };
      response.write(`event: gap\ndata: ${JSON.stringify(gap)}\n\n`);
      after = this.first - 1;
    }
    for (let position = after + 1; position <= this.last; position += 1) this.#send(response, position);
    this.#streams.add(response);
    request.on('close', () => this.#streams.delete(response));
  }

  async #decide(request, path, json) {
    let body = '';
    for await (const chunk of request) body += chunk;
    this.decisions.push([...path, JSON.parse(body).decision]);
    this.gateway = { ...this.gateway, approvals: [] };
    json(200, {});
  }

  /** The page with its records, as an export has them. Its other files stay on the server. */
  async #report(response) {
    const page = await readFile(`${PAGE}index.html`, 'utf8');
    const records = this.lines.join('\n').replaceAll('<', '\\u003c');
    const script = `<script type="application/x-ndjson" id="records">${records}</script>`;
    response.writeHead(200, { 'content-type': MEDIA['.html'], 'content-security-policy': POLICY });
    response.end(page.replace('</body>', () => `${script}</body>`));
  }

  async #file(pathname, response) {
    if (pathname === '/inspect/report.html') return this.#report(response);
    const name = pathname === '/inspect/' ? 'index.html' : pathname.replace('/inspect/', '');
    if (name.includes('/')) return response.writeHead(404).end();
    const bytes = await readFile(PAGE + name).catch(() => null);
    if (bytes === null) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': MEDIA[extname(name)], 'content-security-policy': POLICY }).end(bytes);
  }
}
