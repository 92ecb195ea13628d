/** Which fields of an example are samples, and which calls return real values for them. */
import { type ApiDocument, nameOperation, type Operation } from "./document.ts";

/** A field of an example, and the call whose answer contains its value. */
export interface ExampleSource {
  /** The field's path in the request: "keyId". */
  readonly field: string;
  /** The path in the answer: "result.keyId". */
  readonly path: string;
  readonly operationId: string;
  readonly name: string;
}

/** @param chosen an example's name; by default, or if it does not exist, the first */
export function listSources(api: ApiDocument, operation: Operation, chosen: string): ExampleSource[] {
  const examples = operation["x-grpc"].examples ?? {};
  const links = examples[chosen] ?? Object.values(examples)[0] ?? {};
  return Object.entries(links).flatMap(([field, { answerOf, path }]) => {
    const found = api.operations.find((one) => Object.hasOwn(one["x-grpc"].examples ?? {}, answerOf));
    // The server may not serve the call that returns it.
    if (found === undefined) return [];
    return [{ field, path, operationId: found.operationId, name: nameOperation(found) }];
  });
}
