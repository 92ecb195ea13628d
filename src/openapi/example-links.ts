/**
 * Describes which examples take values from the answers to other examples, so that a page can fill them in.
 */
import { type Answered, type Example, type ExampleValue, isAnswered } from "../calls/example.ts";
import type { ExampleLinks } from "./document.ts";

/**
 * Describes the example links of one RPC.
 *
 * @param own the RPC's examples
 * @param all examples of all RPCs
 * @returns undefined if none of them takes a value, and none of their answers provides one
 */
export function linkExamples(own: readonly Example[], all: readonly Example[]): ExampleLinks | undefined {
  const called = new Set(all.map(({ name }) => name));
  const taken = new Set(all.flatMap(({ request }) => listAnswered(request).map(([, one]) => one.answerOf)));
  const links = own.map(({ name, request }) => {
    // A value that a caller computes from answers is not in any answer.
    const fields = listAnswered(request).filter(([, { answerOf }]) => called.has(answerOf));
    return [name, fields.map(([field, { answerOf, path }]) => [field, { answerOf, path }] as const)] as const;
  });
  if (!links.some(([name, fields]) => fields.length > 0 || taken.has(name))) return undefined;
  return Object.fromEntries(links.map(([name, fields]) => [name, Object.fromEntries(fields)]));
}

/** Lists the values in a request that come from other answers, with their paths. */
function listAnswered(value: ExampleValue, path = ""): [path: string, Answered][] {
  if (typeof value !== "object" || value === null) return [];
  if (isAnswered(value)) return [[path, value]];
  return Object.entries(value).flatMap(([name, part]) =>
    listAnswered(part as ExampleValue, path === "" ? name : `${path}.${name}`),
  );
}
