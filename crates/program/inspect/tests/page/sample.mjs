// A gateway with everything that the page can show.

import { Fixture } from './fixture.mjs';
import { manyRecords } from './journal.mjs';

export const IMAGE = '<img src=x onerror="document.title=\'hacked\'">';

/** A payload of a tool call. */
const call = (args) => ({
  event: 'tool_input_transform',
  tool_name: 'shell',
  cwd: '/home/you/project',
  tool_input: args,
});

/** Adds a call that two hooks change after each other. Returns the id of its event. */
function addRewrite(journal, details) {
  const script = (line) => `set -e\ncd web\n${line}\nnpm run build\nnpm test\n`;
  const original = call({ cmd: 'npm install left-pad', script: script('npm ci') });
  const afterA = call({ cmd: 'npm install left-pad@1.3.0', script: script('npm ci') });
  const afterB = call({
    cmd: 'npm install left-pad@1.3.0 --ignore-scripts',
    script: script('npm ci --ignore-scripts'),
  });
  const id = journal.dispatch(
    'tool_input_transform',
    {
      subject: 'shell',
      tool_use_id: 'call_rewrite',
      rewritten: ['tool_input'],
      duration_ms: 31.4,
      hooks: 2,
    },
    { 'pin-versions': { effect: 'rewrite', duration_ms: 12.5, started_ms: 0.3 } },
  );
  const [run, dispatch] = journal.records.splice(-2);
  const second = {
    ...run,
    hook: 'no-scripts',
    source: '.tenterhook/hooks.yaml:9',
    handler: 'command',
    started_ms: 13.1,
    duration_ms: 18,
  };
  journal.records.push(run, second, dispatch);
  const raw = (answer) => ({
    input_bytes: 412,
    stdout: `${JSON.stringify(answer)}\n`,
    stderr: '',
    exit: 0,
    truncated: false,
  });
  details.set(id, {
    event_id: id,
    event: 'tool_input_transform',
    original,
    final: afterB,
    steps: [
      {
        hook: 'pin-versions',
        matcher: 'shell|task',
        started_ms: 0.3,
        wait_ms: 0.2,
        took_ms: 12.5,
        verdict: 'rewrite',
        reason: null,
        raw: raw({ rewrite: { tool_input: afterA.tool_input } }),
        after: afterA,
      },
      {
        hook: 'no-scripts',
        started_ms: 13.1,
        wait_ms: 0.1,
        took_ms: 18,
        verdict: 'rewrite',
        reason: null,
        raw: raw({ rewrite: { tool_input: afterB.tool_input } }),
        after: afterB,
      },
    ],
    left_out: { hooks: [{ hook: 'format-json', matcher: 'write_file', reason: 'matcher' }], more: 0 },
    fire: "tenterhook fire tool_input_transform --tool shell --arg cmd='npm install left-pad'",
  });
  return id;
}

/** Adds a call whose texts are HTML. Returns the id of its event. */
function addHtml(journal, details) {
  const id = journal.dispatch(
    'pre_tool_use',
    {
      subject: IMAGE,
      tool_use_id: 'call_html',
      permission: 'deny',
      stopped: true,
      reason: IMAGE,
      agent: IMAGE,
    },
    {
      'no-sudo': { effect: 'deny', reason: IMAGE },
      'path-guard': { status: 'failed', cause: IMAGE, let_through: true },
    },
  );
  details.set(id, {
    event_id: id,
    event: 'pre_tool_use',
    original: { tool_input: { cmd: IMAGE, [IMAGE]: 1 } },
    final: { tool_input: { cmd: `${IMAGE}!` } },
    steps: [
      {
        hook: 'no-sudo',
        started_ms: 0,
        wait_ms: 0,
        took_ms: 1,
        verdict: 'deny',
        reason: IMAGE,
        raw: { input_bytes: 1, stdout: IMAGE, stderr: IMAGE, exit: 0, truncated: false },
        after: { tool_input: { cmd: `${IMAGE}!` } },
      },
    ],
    fire: 'tenterhook fire pre_tool_use',
  });
  return id;
}

/** Adds a session with a voice message of which a part was not understood, and two model calls. */
function addVoice(journal) {
  journal.dispatch(
    'message_receive',
    { subject: 'web', session_id: 'voice-session', rewritten: ['parts'] },
    {
      stt: {
        effect: 'rewrite',
        duration_ms: 1540,
        steps: [
          { name: 'conversion', duration_ms: 120 },
          { name: 'transcription', duration_ms: 1400 },
        ],
        problems: ['not transcribed: no result within 30s'],
      },
    },
  );
  const call = { record: 'model_call', model: 'acme/large', session_id: 'voice-session', agent: 'root' };
  journal.add({ ...call, usage: { input_tokens: 1200, output_tokens: 80 }, cost: 0.0042, duration_ms: 900 });
  journal.add({ ...call, usage: { input_tokens: 1300, output_tokens: 20 }, cost: 0.0011, duration_ms: 700 });
}

function gatewayState(at) {
  const ago = (seconds) => new Date(at - seconds * 1000).toISOString();
  return {
    address: 'http://127.0.0.1:7878',
    started: ago(9000),
    conversations: 3,
    inbox: { waiting: 3, oldest: at - 90_000 },
    outbox: { waiting: 0 },
    messages: { recorded: 214, duplicate: 2, refused: 1, failed: 0 },
    channels: [
      {
        id: 'web',
        kind: 'web',
        state: 'up',
        since: ago(9000),
        last_message: ago(42),
        inbox: { waiting: 3, oldest: at - 90_000 },
        outbox: { waiting: 0 },
      },
      {
        id: 'telegram',
        kind: 'telegram',
        state: 'backing_off',
        since: ago(75),
        last_message: ago(3700),
        error: 'the connection was reset',
      },
      {
        id: 'alerts',
        kind: 'webhook',
        state: 'failed',
        since: ago(8999),
        error: 'the secret is missing: set ALERTS_SECRET',
      },
    ],
    chats: [
      {
        chat: { channel: 'web', chat: 'ada/1' },
        title: 'Fix the flaky test',
        last_seq: 48,
        at: at - 42_000,
        inbox: { waiting: 2, oldest: at - 90_000 },
        outbox: { waiting: 0 },
      },
      { chat: { channel: 'telegram', chat: '4711' }, title: 'Deploy notes', last_seq: 7, at: at - 3_700_000 },
    ],
    approvals: [
      {
        nonce: 'n-1',
        tool: 'shell',
        args: { cmd: 'git push origin main' },
        card: {
          command: 'git push origin main',
          text: 'git push origin main\n\n20 characters for the tool shell\nWhy: pushes need a person',
        },
        chat: { channel: 'web', chat: 'ada/1' },
        expires: at / 1000 + 300,
      },
    ],
    pairings: [{ channel: 'telegram', code: 'K7QM', name: 'Grace' }],
  };
}

function hooksInForce() {
  const hook = (event, id, kind, path, line, extra = {}) => ({
    event,
    id,
    matcher: '*',
    kind,
    handler: kind,
    phase: 'main',
    priority: 0,
    timeout_seconds: 60,
    policy: { on_error: 'block', because: 'a gate that fails denies' },
    source: { layer: 'project', path, line },
    trust: 'approved',
    ...extra,
  });
  return {
    hooks: [
      hook('pre_tool_use', 'no-sudo', 'builtin', '.tenterhook/hooks.yaml', 12, { matcher: 'shell' }),
      hook('pre_tool_use', 'path-guard', 'script', 'guard.py', 31, {
        policy: { on_error: 'allow', because: 'the hook says so' },
      }),
      hook('pre_tool_use', 'no-secrets', 'builtin', '.tenterhook/hooks.yaml', 40, { matcher: 'write_file' }),
      hook('post_tool_use', 'format-code', 'command', '.tenterhook/hooks.yaml', 27, { matcher: 'edit_file' }),
    ],
    withheld: [
      { name: 'deploy-guard', source: '.tenterhook/hooks.yaml', events: ['pre_tool_use'], trust: 'untrusted' },
    ],
    diverged: [],
    broken: [],
    untrusted: [],
    disabled: [],
    extensions: [],
  };
}

/** Returns a server with `count` records, a rewrite, HTML in its texts, and the ids of these events. */
export function sampleGateway(count = 4000, options = {}) {
  const journal = manyRecords(count);
  const details = new Map();
  const html = addHtml(journal, details);
  const rewrite = addRewrite(journal, details);
  journal.add({
    record: 'host',
    host: 'claude',
    event: 'PreToolUse',
    session_id: 'session-9',
    problem: 'the daemon did not answer',
  });
  journal.add({ record: 'output', worker: 'python', line: 'WARNING:root:10 calls' });
  addVoice(journal);
  journal.turn('session-1');
  const fixture = new Fixture({ records: journal.records, ...options });
  const newest = Math.max(...journal.records.map(({ timestamp }) => Date.parse(timestamp ?? 0)));
  Object.assign(fixture, { details, hooks: hooksInForce(), gateway: gatewayState(newest) });
  return { fixture, journal, html, rewrite };
}
