// What replaces a function or class of pi's packages that is not available here. It can be imported,
// passed on and extended. Using it is an error that names it.

const PLAIN = new Set([
  'prototype',
  'name',
  'length',
  'then',
  'toString',
  'toJSON',
  'constructor',
  'call',
  'apply',
  'bind',
  'caller',
  'arguments',
]);

export function missing(from, name) {
  const fail = () => {
    throw new Error(
      `\`${name}\` of \`${from}\` is not available here; install pi's package next to the extension to use it`,
    );
  };
  function replacement() {
    return fail();
  }
  return new Proxy(replacement, {
    get(target, key) {
      if (typeof key === 'symbol' || PLAIN.has(key)) return key === 'then' ? undefined : Reflect.get(target, key);
      return missing(from, `${name}.${key}`);
    },
  });
}
