/** The help, word by word. After an intended change: npx vitest run extensions/top/test/help.test.ts -u */
import { expect, it } from "vitest";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { topVerbs } from "../verb.ts";

it("has the help that is recorded", async () => {
  await expect(recordHelp(topVerbs)).toMatchFileSnapshot("help.txt");
});
