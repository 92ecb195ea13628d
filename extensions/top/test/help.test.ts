/** Snapshot of the help text. To update it: npx vitest run extensions/top/test/help.test.ts -u */
import { expect, it } from "vitest";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { topVerbs } from "../verb.ts";

it("matches the recorded help", async () => {
  await expect(recordHelp(topVerbs)).toMatchFileSnapshot("help.txt");
});
