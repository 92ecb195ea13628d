/** The answers that the API description shows. */
import answersOfCore from "../../docs/answers.json" with { type: "json" };
import type { Example, Json } from "../../src/calls/example.ts";
import type { Outcome } from "./call-examples.ts";
import { cleanAnswer } from "./clean-answer.ts";

/**
 * Cleans the answers to examples, by example name.
 *
 * @throws Error for a response other than 200
 */
export function readAnswers(outcomes: ReadonlyMap<string, Outcome>): Record<string, Json> {
  return Object.fromEntries(
    [...outcomes].map(([name, { status, mediaType, body, bytes }]) => {
      if (status !== 200) throw new Error(`${name} returned ${status}`);
      const raw = Buffer.from(bytes).toString(mediaType.startsWith("text/") ? "utf8" : "base64");
      return [name, cleanAnswer(body ?? raw)];
    }),
  );
}

/** Returns the recorded answers of the core and of extensions, by example name. */
export function listRecorded(examples: readonly Example[]): Readonly<Record<string, Json>> {
  const others = examples.flatMap(({ name, answer }) => (answer === undefined ? [] : [[name, answer]]));
  return { ...answersOfCore, ...Object.fromEntries(others) };
}

/**
 * Returns the shape of an answer: its members, the types of their values, and the values that are names or verdicts. A
 * list has each distinct shape of its elements once.
 */
export function shapeOf(value: Json): unknown {
  if (Array.isArray(value)) return [...new Set(value.map((part) => JSON.stringify(shapeOf(part))))].sort();
  if (typeof value === "object" && value !== null) {
    const sorted = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(sorted.map(([name, part]) => [name, shapeOf(part)]));
  }
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") return typeof value;
  if (/\bSHORTENED[/_]FROM\b/.test(value)) return "long bytes";
  return /^[A-Z]{2}[A-Z0-9_-]*$|SECRET|^\(secret\)$/.test(value) ? value : "text";
}
