/** Example requests for every call. A test sends them to a real server. */
/** A value of JSON. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** A request, as the JSON form of its whole message, regardless of where HTTP carries the fields. */
export interface Example {
  /** The full name of the RPC: "kms.KmsService.Sign". */
  readonly rpc: string;
  /** Unique name of the example. */
  readonly name: string;
  readonly summary: string;
  readonly request: ExampleValue;
  /** The token to send. */
  readonly token?: Answered;
  /** The recorded answer, unless it is recorded with the core's answers. */
  readonly answer?: Json;
}

/** An example whose request is complete. */
export type FilledExample = Omit<Example, "request"> & { readonly request: Json };

/** JSON that may contain values from the answers to earlier examples. */
export type ExampleValue =
  | Json
  | Answered
  | readonly ExampleValue[]
  | { readonly [name: string]: ExampleValue };

/** A value from the answer to an earlier example. Plain data, because it is sent to another thread. */
export interface Answered {
  /** The name of the example. */
  readonly answerOf: string;
  /** The path in its answer: "result.keyId". */
  readonly path: string;
  /** The value of the same kind that the document shows instead. */
  readonly sample: Json;
}

/** Creates an example. The RPC has the form "kms.KmsService.Sign". */
export function example(
  rpc: string,
  name: string,
  summary: string,
  request: ExampleValue = {},
  token?: Answered,
): Example {
  return { rpc, name, summary, request, ...(token && { token }) };
}

/** Adds the recorded answers to an extension's examples. */
export function withAnswers(
  examples: readonly Example[],
  answers: Readonly<Record<string, Json>>,
): readonly Example[] {
  return examples.map((one) => {
    const answer = answers[one.name];
    return { ...one, ...(answer !== undefined && { answer }) };
  });
}

/** Refers to the value at a path in an earlier answer. The document shows the sample instead. */
export function answered(name: string, path: string, sample: Json): Answered {
  return { answerOf: name, path, sample };
}

/** A sample for bytes that are too long to show: 48 bytes in base64. */
export const someBytes = Buffer.from("these are some of the bytes of a longer value ...")
  .subarray(0, 48)
  .toString("base64");

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** Returns a sample ID of a kind. */
export function someId(kind: string): string {
  return `${kind}-3f2b8c1e-5d47-4a90-8e16-9c0d7b2a4f63`;
}

/** Replaces each reference to an earlier answer with the result of `fill`. */
export function fillExample(value: ExampleValue, fill: (answered: Answered) => Json): Json {
  if (isAnswered(value)) return fill(value);
  if (Array.isArray(value)) return value.map((part: ExampleValue) => fillExample(part, fill));
  if (typeof value !== "object" || value === null) return value as Json;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, fillExample(part as ExampleValue, fill)]),
  );
}

export function isAnswered(value: ExampleValue): value is Answered {
  return typeof value === "object" && value !== null && "answerOf" in value;
}
