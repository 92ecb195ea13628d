/** Snapshot of the help text. To update it: npx vitest run extensions/tlog/test/help.test.ts -u */
import { expect, it } from "vitest";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { fetchVerbs } from "../fetch-verbs.ts";
import { leafVerbs } from "../leaf-verb.ts";
import { verifyVerbs } from "../verify-verb.ts";

it("matches the recorded help", async () => {
  const text = recordHelp([...fetchVerbs, ...verifyVerbs, ...leafVerbs]);
  await expect(text).toMatchFileSnapshot("help.txt");
});
