/** The help of every verb, word by word. After an intended change: npx vitest run test/cli/help.test.ts -u */
import { describe, expect, it } from "vitest";
import { loadAllVerbs, verbTable } from "../../src/cli/groups.ts";
import { describeEveryVerb, describeGroup, describeVerb, describeVerbs } from "../../src/cli/help.ts";

const verbs = await loadAllVerbs(verbTable);

/** What follows the options in every help text; `qsp help` has it as well. */
const ending = /\n\nServer and caller:\n.*|\n\nExit codes:\n.*/s;

describe("the help of verbs", () => {
  it("is as recorded", async () => {
    const groups = Object.values(Object.groupBy(verbs, ({ name }) => name.split(" ")[0] ?? ""));
    const texts = [
      describeVerbs(verbs),
      describeEveryVerb(verbs),
      ...groups.map((group = []) => describeGroup(group)),
      ...verbs.map((verb) => describeVerb(verb).replace(ending, "\n")),
    ];
    await expect(texts.join("\n---\n")).toMatchFileSnapshot("help.txt");
  });
});
