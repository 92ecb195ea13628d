/**
 * Snapshot of the help text. To update it: npx vitest run extensions/signature-formats/test/help.test.ts -u
 */
import { expect, it } from "vitest";
import { signVerbs, verifyVerbs } from "../../../src/cli/verbs/signatures.ts";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { addFormatsToSign, addFormatsToVerify } from "../verbs.ts";

it("matches the recorded help", async () => {
  const text = recordHelp([...addFormatsToSign(signVerbs), ...addFormatsToVerify(verifyVerbs)]);
  await expect(text).toMatchFileSnapshot("help.txt");
});
