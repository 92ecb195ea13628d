/**
 * Snapshot of the help text. To update it: npx vitest run extensions/certificate-requests/test/help.test.ts
 * -u
 */
import { expect, it } from "vitest";
import { caVerbs } from "../../../src/cli/operator/ca.ts";
import { toVerb } from "../../../src/cli/operator/store-verb.ts";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { kmsCsrVerbs } from "../kms-csr-verb.ts";
import { addRequests } from "../verbs.ts";

it("matches the recorded help", async () => {
  const issue = addRequests(caVerbs).filter(({ line }) => line.startsWith("ca issue"));
  const text = recordHelp([...kmsCsrVerbs, ...issue.map((verb) => toVerb(verb))]);
  await expect(text).toMatchFileSnapshot("help.txt");
});
