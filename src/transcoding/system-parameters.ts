/**
 * Reads the system parameters of Google's APIs (cloud.google.com/apis/docs/system-parameters): query
 * parameters that every call accepts in addition to its fields. Each name may begin with "$".
 */
import { refuse } from "../errors.ts";
import { parameterDuplicate, parameterInvalid, splitQuery } from "./query.ts";
import type { JsonForm } from "./rendering.ts";
import type { Route } from "./routes.ts";

/** The effect of the system parameters of a request. */
export interface SystemParameters {
  /** The other parameters. */
  readonly rawQuery: string;
  readonly form: JsonForm;
}

/** Parameters that select the form of the answer: each supported value, with its effect. */
const forms: Readonly<Record<string, Readonly<Record<string, Partial<JsonForm>>>>> = {
  alt: { json: {}, "json;enum-encoding=int": { enumsAsNumbers: true } },
  // Google's Node client sends 0 if configured to save bytes.
  prettyPrint: { true: { isPretty: true }, false: {}, "1": { isPretty: true }, "0": {} },
  // The form of errors: 2 is the current form (google.aip.dev/193), 1 its predecessor.
  ".xgafv": { "2": {} },
};

/** Parameters for Google's billing and quotas. This server has neither, so they have no effect. */
const ignored = new Set(["key", "quotaUser"]);

/** Parameters that change what a call does. Ignoring them would surprise the caller. */
const refused: Readonly<Record<string, string>> = {
  access_token: "send the token in the authorization header; URLs end up in logs",
  oauth_token: "send the token in the authorization header; URLs end up in logs",
  callback: "JSONP is not supported; call from a page with fetch",
  fields: "answers are always complete; omit the parameter",
  ct: "send the content-type header",
  httpMethod: "send the request with that method",
  upload_protocol: "uploads are not supported",
  uploadType: "uploads are not supported",
};

/**
 * Separates the system parameters of a request from its fields. A request field takes precedence over a
 * system parameter of the same name. With "$", the name always means the system parameter.
 *
 * @throws PARAMETER_UNKNOWN, PARAMETER_DUPLICATE, TARGET_INVALID
 */
export function readSystemParameters(route: Route, rawQuery: string): SystemParameters {
  if (rawQuery === "") return { rawQuery, form: {} };
  const others: string[] = [];
  const seen = new Set<string>();
  let form: JsonForm = {};
  for (const [given, value, part] of splitQuery(rawQuery)) {
    const name = given.replace(/^\$/, "");
    if (!isSystemParameter(name) || (name === given && isField(route, name))) {
      others.push(part);
      continue;
    }
    if (seen.has(name)) throw parameterDuplicate(given, given);
    seen.add(name);
    form = { ...form, ...readForm(given, name, value) };
  }
  return { rawQuery: others.join("&"), form };
}

function isSystemParameter(name: string): boolean {
  return Object.hasOwn(forms, name) || Object.hasOwn(refused, name) || ignored.has(name);
}

/** Returns whether the query can have a field with this name. */
function isField({ spec, body }: Route, name: string): boolean {
  return (
    body.kind !== "all" &&
    spec.method.input.fields.some((field) => field.jsonName === name || field.name === name)
  );
}

function readForm(given: string, name: string, value: string): Partial<JsonForm> {
  const advice = refused[name];
  if (advice !== undefined) throw parameterInvalid(given, advice);
  const values = forms[name];
  if (values === undefined) return {};
  if (Object.hasOwn(values, value)) return values[value] ?? {};
  const known = Object.keys(values).join(" or ");
  throw refuse(
    "PARAMETER_UNKNOWN",
    `query parameter "${given}": "${value}" is not supported; send ${known}`,
    { parameter: given },
    [{ field: given, description: `must be ${known}` }],
  );
}
