/** The help, word by word. After an intended change: npx vitest run extensions/sigstore/test/help.test.ts -u */
import { expect, it } from "vitest";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { sigstoreVerbs } from "../verb.ts";

it("has the help that is recorded", async () => {
  await expect(recordHelp(sigstoreVerbs)).toMatchFileSnapshot("help.txt");
});
