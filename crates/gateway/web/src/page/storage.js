// What the browser keeps: chats that were seen, messages that the server has not accepted, drafts.
//
// Storage can be full or switched off. Then everything works until the page is closed.

const PREFIX = 'tenterhook.';

export function load(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key)) ?? fallback;
  } catch {
    return fallback;
  }
}

/** Saves a value. `null` removes it. */
export function save(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // See above.
  }
}

// Each unsent message has a key of its own, so that two tabs do not overwrite each other's messages.
export const unsent = {
  add: (message) => save(`unsent.${message.message_id}`, message),
  remove: (id) => save(`unsent.${id}`, null),
  all() {
    const prefix = `${PREFIX}unsent.`;
    let keys = [];
    try {
      keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
    } catch {
      // See above.
    }
    const messages = keys.map((key) => load(key.slice(PREFIX.length), null)).filter((message) => message?.message_id);
    return messages.sort((a, b) => a.at - b.at);
  },
};
