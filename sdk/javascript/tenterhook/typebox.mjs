// JSON Schema in the words of TypeBox, for extensions that declare the arguments of a tool with it where it is not installed.

const optional = Symbol('optional');
const plain = (type) => (options) => ({ type, ...options });

export const Type = {
  String: plain('string'),
  Number: plain('number'),
  Integer: plain('integer'),
  Boolean: plain('boolean'),
  Null: plain('null'),
  Any: (options) => ({ ...options }),
  Unknown: (options) => ({ ...options }),
  Literal: (value, options) => ({ const: value, ...options }),
  Unsafe: (schema) => ({ ...schema }),
  Array: (items, options) => ({ type: 'array', items, ...options }),
  Tuple: (items, options) => ({
    type: 'array', prefixItems: items, minItems: items.length, maxItems: items.length, ...options,
  }),
  Record: (_key, value, options) => ({ type: 'object', additionalProperties: value, ...options }),
  Union: (schemas, options) => ({ anyOf: schemas, ...options }),
  Intersect: (schemas, options) => ({ allOf: schemas, ...options }),
  Enum: (values, options) => ({ enum: Object.values(values), ...options }),
  Optional: (schema) => ({ ...schema, [optional]: true }),
  Object(properties, options) {
    const required = Object.keys(properties).filter((key) => !properties[key][optional]);
    return { type: 'object', properties, ...(required.length > 0 && { required }), ...options };
  },
};

/** A text that is one of several, as `@mariozechner/pi-ai` has it. */
export const StringEnum = (values, options) => ({ type: 'string', enum: [...values], ...options });
