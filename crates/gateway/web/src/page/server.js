// Requests over HTTP: signing in and files.

import { load, save } from './storage.js';

/** The largest file that the server takes. */
export const MAX_FILE = 20 * 1024 * 1024;

// Browsers send the cookie to every port of this host, but only pages of this port can read what the page keeps. So the
// server wants both. The variable is for browsers that keep nothing.
let lastKey = null;

/** Returns the page's part of its token, or `null` before the first sign-in. */
export const pageKey = () => load('key', lastKey);

const pageHeaders = () => ({ 'x-tenterhook': pageKey() ?? '1' });

/**
 * Signs in with the one-time code of a link. Returns an error message, or `null`. A browser that is signed in as someone
 * else asks first: the link may come from someone who wants to read what is written next.
 */
export async function signIn(code, replace = false) {
  try {
    const headers = { 'x-tenterhook': '1', 'content-type': 'application/json' };
    const response = await fetch('/v1/login', { method: 'POST', headers, body: JSON.stringify({ code, replace }) });
    if (response.ok) {
      lastKey = (await response.json()).key;
      save('key', lastKey);
      return null;
    }
    if (response.status === 409) {
      const { error } = await response.json();
      return confirm(`Sign in as someone else? ${error.message}.`) ? signIn(code, true) : null;
    }
    if (response.status === 429) return 'There were too many attempts. Wait a few minutes, then open a new link.';
    return 'This link was used already, or it has expired. A link works once, for 60 seconds.';
  } catch {
    return 'The gateway could not be reached. Check that it runs, then open a new link.';
  }
}

/** Returns `yes` if the server knows this browser, `no` if it does not, and `unknown` if it does not say. */
export async function isSignedIn() {
  try {
    const { ok, status } = await fetch('/v1/chats', { headers: pageHeaders() });
    // Without the channel for HTTP, the address does not exist, but the browser was checked.
    if (ok || status === 404) return 'yes';
    return status === 401 || status === 403 ? 'no' : 'unknown';
  } catch {
    return 'unknown';
  }
}

/** Uploads a file. Returns what the server says about its copy. */
export async function upload(file, signal) {
  const headers = {
    ...pageHeaders(),
    'x-file-name': encodeURIComponent(file.name),
    'content-type': file.type || 'application/octet-stream',
  };
  const response = await fetch('/v1/media', { method: 'POST', headers, body: file, signal });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error?.message ?? `the server answered ${response.status}`);
  return answer;
}

export const mediaUrl = (media) => `/v1/media/${encodeURIComponent(media.id)}`;
