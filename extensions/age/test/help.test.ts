/** Snapshot of the help text. To update it: npx vitest run extensions/age/test/help.test.ts -u */
import { expect, it } from "vitest";
import { readKeyFile } from "../../../src/cli/keys/importable-key.ts";
import { createImportVerb } from "../../../src/cli/verbs/kms/new-key.ts";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { decryptVerbs } from "../decrypt-verb.ts";
import { encryptVerbs } from "../encrypt-verb.ts";
import { addAgeVerbs } from "../kms-verbs.ts";
import { pluginVerbs } from "../plugin-verb.ts";

it("matches the recorded help", async () => {
  const changed = addAgeVerbs([createImportVerb(readKeyFile)]);
  const verbs = [...changed, ...encryptVerbs, ...decryptVerbs, ...pluginVerbs];
  await expect(recordHelp(verbs)).toMatchFileSnapshot("help.txt");
});
