/** Requests that show how a call is made, and that a test makes against a real server. */
/** A value of JSON. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** One request, as the JSON form of its whole message, wherever the fields stand over HTTP. */
export interface Example {
  /** The RPC by its full name: "kms.KmsService.Sign". */
  readonly rpc: string;
  /** Tells it from other examples; unique. */
  readonly name: string;
  /** Says what it shows. */
  readonly summary: string;
  readonly request: ExampleValue;
  /** The token that it is made with. */
  readonly token?: Answered;
}

/** An example in whose request nothing is left open. */
export type FilledExample = Omit<Example, "request"> & { readonly request: Json };

/** JSON, in which the answers to earlier examples may stand. */
export type ExampleValue =
  | Json
  | Answered
  | readonly ExampleValue[]
  | { readonly [name: string]: ExampleValue };

/** A value out of the answer to an earlier example. Plain data: it crosses to another thread. */
export interface Answered {
  /** The name of the example. */
  readonly answerOf: string;
  /** Where in its answer: "result.keyId". */
  readonly path: string;
  /** What stands in the document instead: something of that kind. */
  readonly sample: Json;
}

/** Writes down an example; the RPC is named as in "kms.KmsService.Sign". */
export function example(
  rpc: string,
  name: string,
  summary: string,
  request: ExampleValue = {},
  token?: Answered,
): Example {
  return { rpc, name, summary, request, ...(token && { token }) };
}

/** Stands for what the answer to an earlier example has at a path, and in the document for the sample. */
export function answered(name: string, path: string, sample: Json): Answered {
  return { answerOf: name, path, sample };
}

/** What stands for bytes that are too long to be shown: 48 of them, in base64. */
export const someBytes = Buffer.from("these are some of the bytes of a longer value ...")
  .subarray(0, 48)
  .toString("base64");

/** The base64 of a text. */
export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** An identifier that stands for others of its kind. */
export function someId(kind: string): string {
  return `${kind}-3f2b8c1e-5d47-4a90-8e16-9c0d7b2a4f63`;
}

/** Writes a request with what `fill` makes of the answers of others. */
export function fillExample(value: ExampleValue, fill: (answered: Answered) => Json): Json {
  if (isAnswered(value)) return fill(value);
  if (Array.isArray(value)) return value.map((part: ExampleValue) => fillExample(part, fill));
  if (typeof value !== "object" || value === null) return value as Json;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, fillExample(part as ExampleValue, fill)]),
  );
}

function isAnswered(value: ExampleValue): value is Answered {
  return typeof value === "object" && value !== null && "answerOf" in value;
}
