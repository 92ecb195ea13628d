/** Builds the texts in which the help of verbs is recorded. */
import { describeGroup, describeVerb } from "../../src/cli/output/help.ts";
import type { Verb } from "../../src/cli/verb.ts";

/** What follows the options in every help text; `qsp help` has it as well. */
const ending = /\n\nServer and caller:\n.*|\n\nExit codes:\n.*/s;

/**
 * Describes the verb groups, and each verb.
 *
 * @param lists texts to put first
 */
export function recordHelp(verbs: readonly Verb[], ...lists: readonly string[]): string {
  const groups = Object.values(Object.groupBy(verbs, ({ name }) => name.split(" ")[0] ?? ""));
  const texts = [
    ...lists,
    ...groups.map((group = []) => describeGroup(group)),
    ...verbs.map((verb) => describeVerb(verb).replace(ending, "\n")),
  ];
  return texts.join("\n---\n");
}
