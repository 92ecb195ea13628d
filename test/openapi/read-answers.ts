/** The answers that the API description shows. */
import type { Json } from "../../src/protocol/example.ts";
import type { Outcome } from "./call-examples.ts";
import { cleanAnswer } from "./clean-answer.ts";

/**
 * Cleans the answers of examples, by the names of the examples.
 *
 * @throws an Error for an answer other than 200.
 */
export function readAnswers(outcomes: ReadonlyMap<string, Outcome>): Record<string, Json> {
  return Object.fromEntries(
    [...outcomes].map(([name, { status, mediaType, body, bytes }]) => {
      if (status !== 200) throw new Error(`${name} is answered with ${status}`);
      const raw = Buffer.from(bytes).toString(mediaType.startsWith("text/") ? "utf8" : "base64");
      return [name, cleanAnswer(body ?? raw)];
    }),
  );
}
