/** Which fields of an example are samples, and whose answers have real values. */
import { type ApiDocument, nameOperation, type Operation } from "./document.ts";

/** A field of an example, and the call whose answer has its value. */
export interface ExampleSource {
  /** The path of the field in the request: "keyId". */
  readonly field: string;
  /** The path in the answer: "result.keyId". */
  readonly path: string;
  readonly operationId: string;
  readonly name: string;
}

/** @param chosen the name of an example; the first, if there is none of this name */
export function listSources(api: ApiDocument, operation: Operation, chosen: string): ExampleSource[] {
  const examples = operation["x-grpc"].examples ?? {};
  const links = examples[chosen] ?? Object.values(examples)[0] ?? {};
  return Object.entries(links).flatMap(([field, { answerOf, path }]) => {
    const found = api.operations.find((one) => Object.hasOwn(one["x-grpc"].examples ?? {}, answerOf));
    // The server may not serve the call that answers with it.
    if (found === undefined) return [];
    return [{ field, path, operationId: found.operationId, name: nameOperation(found) }];
  });
}
