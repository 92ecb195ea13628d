/** The help of every verb, word for word. To record an intended change: npx vitest run test/cli/help.test.ts -u */
import { describe, expect, it } from "vitest";
import { createVerbTable, loadAllVerbs } from "../../src/cli/groups.ts";
import { describeProgram } from "../../src/cli/output/help.ts";
import { recordHelp } from "./recorded-help.ts";

const verbs = await loadAllVerbs(createVerbTable());

describe("the help of all verbs", () => {
  it("matches the recorded text", async () => {
    const text = recordHelp(verbs, describeProgram(verbs, "groups"), describeProgram(verbs, "verbs"));
    await expect(text).toMatchFileSnapshot("help.txt");
  });
});
