// A replacement for TypeBox that produces JSON Schema. Extensions that declare the arguments of a tool
// with TypeBox get it if TypeBox is not installed.

import { missing } from 'tenterhook:pi/missing.mjs';

/** Marks properties that may be missing. JSON does not show it. */
const optional = Symbol('optional');
const mark = (schema, isOptional) => Object.defineProperty({ ...schema }, optional, { value: isOptional });
const plain = (type) => (options) => ({ type, ...options });

function object(properties, options) {
  const required = Object.keys(properties).filter((key) => !properties[key][optional]);
  return { type: 'object', properties, ...(required.length > 0 && { required }), ...options };
}

/** Returns an object schema with other properties. */
function changed(schema, change, options) {
  const { properties, required: _, type: __, ...rest } = schema;
  return object(Object.fromEntries(Object.entries(properties).flatMap(change)), { ...rest, ...options });
}
const keysOf = (keys) => (Array.isArray(keys) ? keys : (keys.anyOf ?? [keys]).map((it) => it.const));

const types = {
  String: plain('string'),
  Number: plain('number'),
  Integer: plain('integer'),
  BigInt: plain('integer'),
  Boolean: plain('boolean'),
  Null: plain('null'),
  Undefined: plain('undefined'),
  Void: plain('void'),
  Any: (options) => ({ ...options }),
  Unknown: (options) => ({ ...options }),
  Never: (options) => ({ not: {}, ...options }),
  Date: (options) => ({ type: 'string', format: 'date-time', ...options }),
  RegExp: (pattern, options) => ({ type: 'string', pattern: pattern.source ?? pattern, ...options }),
  Literal: (value, options) => ({ const: value, type: typeof value, ...options }),
  Const: (value, options) => ({ const: value, ...options }),
  Unsafe: (schema) => ({ ...schema }),
  Not: (schema, options) => ({ not: schema, ...options }),
  Ref: (name, options) => ({ $ref: name.$id ?? name, ...options }),
  Array: (items, options) => ({ type: 'array', items, ...options }),
  Tuple: (items, options) => ({
    type: 'array',
    prefixItems: items,
    minItems: items.length,
    maxItems: items.length,
    ...options,
  }),
  Record: (_key, value, options) => ({ type: 'object', additionalProperties: value, ...options }),
  Union: (schemas, options) => ({ anyOf: schemas, ...options }),
  Intersect: (schemas, options) => ({ allOf: schemas, ...options }),
  Enum: (values, options) => ({ enum: Object.values(values), ...options }),
  Optional: (schema, isOptional = true) => mark(schema, isOptional),
  Readonly: (schema) => mark(schema, schema[optional]),
  ReadonlyOptional: (schema) => mark(schema, true),
  Object: object,
  Composite: (schemas, options) => object(Object.assign({}, ...schemas.map((it) => it.properties)), options),
  Partial: (schema, options) => changed(schema, ([key, it]) => [[key, mark(it, true)]], options),
  Required: (schema, options) => changed(schema, ([key, it]) => [[key, mark(it, false)]], options),
  Pick: (schema, keys, options) =>
    changed(schema, (entry) => (keysOf(keys).includes(entry[0]) ? [entry] : []), options),
  Omit: (schema, keys, options) =>
    changed(schema, (entry) => (keysOf(keys).includes(entry[0]) ? [] : [entry]), options),
  KeyOf: (schema, options) => ({
    anyOf: Object.keys(schema.properties).map((key) => types.Literal(key)),
    ...options,
  }),
  Index: (schema, key) => schema.properties[keysOf(key)[0]],
};

/** The types. Using one that is missing is an error that names it. */
export const Type = new Proxy(types, {
  get: (own, name) => (typeof name === 'symbol' || name in own ? own[name] : missing('typebox', `Type.${name}`)),
});

// Version 1 also exports every type on its own. Some share their name with a global.
const { String: S, Number: N, Boolean: B, BigInt: I, Array: A, Object: O, Date: D, RegExp: R, ...others } = types;
export { S as String, N as Number, B as Boolean, I as BigInt, A as Array, O as Object, D as Date, R as RegExp };
export const {
  Integer,
  Null,
  Undefined,
  Void,
  Any,
  Unknown,
  Never,
  Literal,
  Const,
  Unsafe,
  Not,
  Ref,
  Tuple,
  Record,
  Union,
  Intersect,
  Enum,
  Optional,
  Readonly,
  ReadonlyOptional,
  Composite,
  Partial,
  Required,
  Pick,
  Omit,
  KeyOf,
  Index,
} = others;
export { Type as default };
