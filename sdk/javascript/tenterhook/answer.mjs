// Checks what handlers return, because JSON would silently drop some values.

/** Returns whether a value is a plain object, which JSON represents completely, and not an instance of a class. */
export function isPlain(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  // Plain objects of another context have a different prototype.
  return prototype === null || (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf'));
}

/** Returns a short description of a value, for a message. */
export function named(value) {
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  const name = tag === 'Object' ? value.constructor?.name || 'an object of a class' : tag;
  return /^an /.test(name) ? name : `${/^[AEIO]/.test(name) ? 'an' : 'a'} ${name}`;
}

/** Returns a description of a value that JSON would omit or replace, or nothing for any other value. */
function lost(value) {
  if (value === undefined) return 'undefined';
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') return named(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  const isWritten = value === null || typeof value !== 'object' || Array.isArray(value) || typeof value.toJSON === 'function';
  return isWritten || isPlain(value) ? undefined : named(value);
}

/** Returns an effect if JSON can represent all its values. Throws otherwise, because JSON would silently drop a part of it. */
export function complete(effect) {
  const look = (value, place) => {
    for (const [key, inner] of Object.entries(value)) {
      const here = place === '' ? key : `${place}.${key}`;
      const problem = lost(inner);
      if (problem) throw new TypeError(`the handler returned ${problem} as \`${here}\`, expected a value that JSON can represent`);
      if (typeof inner === 'object' && inner !== null && typeof inner.toJSON !== 'function') look(inner, here);
    }
  };
  look(effect, '');
  return effect;
}

/** Returns the properties of an instance of a class, including getters, as a plain object. */
export function readOut(value) {
  const read = { ...value };
  for (let kind = Object.getPrototypeOf(value); !isRoot(kind); kind = Object.getPrototypeOf(kind)) {
    for (const [key, { get, value: held }] of Object.entries(Object.getOwnPropertyDescriptors(kind))) {
      const isField = get !== undefined || (held !== undefined && typeof held !== 'function');
      if (isField && !Object.hasOwn(read, key)) read[key] = value[key];
    }
  }
  return read;
}

const isRoot = (kind) => kind === null || Object.getPrototypeOf(kind) === null;
