/** The help of every verb, word for word. To record an intended change: npx vitest run test/cli/help.test.ts -u */
import { describe, expect, it } from "vitest";
import { extensions } from "../../extensions/index.ts";
import { createVerbTable, loadAllVerbs } from "../../src/cli/groups.ts";
import { describeGroup, describeProgram, describeVerb } from "../../src/cli/output/help.ts";
import type { Verb } from "../../src/cli/verb.ts";

/** What follows the options in every help text; `qsp help` has it as well. */
const ending = /\n\nServer and caller:\n.*|\n\nExit codes:\n.*/s;

/** The texts to record: these lists, the verb groups, and each verb. */
function recordHelp(verbs: readonly Verb[], ...lists: readonly string[]): string {
  const groups = Object.values(Object.groupBy(verbs, ({ name }) => name.split(" ")[0] ?? ""));
  const ofVerbs = verbs.map((verb) => describeVerb(verb).replace(ending, "\n"));
  return [...lists, ...groups.map((group = []) => describeGroup(group)), ...ofVerbs].join("\n---\n");
}

const verbs = await loadAllVerbs(createVerbTable());
const helps = new Set(verbs.map(describeVerb));
const withVerbs = extensions.filter(
  ({ verbs: own = [], changedVerbs = [], changedStoreVerbs = [] }) =>
    own.length + changedVerbs.length + changedStoreVerbs.length > 0,
);

describe("the help of all verbs", () => {
  it("matches the recorded text", async () => {
    const text = recordHelp(verbs, describeProgram(verbs, "groups"), describeProgram(verbs, "verbs"));
    await expect(text).toMatchFileSnapshot("help.txt");
  });

  it.each(withVerbs)("matches the recorded text for what $name adds or changes", async (extension) => {
    const all = await loadAllVerbs(createVerbTable([extension]));
    const text = recordHelp(all.filter((verb) => !helps.has(describeVerb(verb))));
    await expect(text).toMatchFileSnapshot(`../../extensions/${extension.name}/test/help.txt`);
  });
});
