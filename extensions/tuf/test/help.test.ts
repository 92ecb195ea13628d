/** Snapshot of the help text. To update it: npx vitest run extensions/tuf/test/help.test.ts -u */
import { expect, it } from "vitest";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { rootVerbs } from "../root-verbs.ts";
import { repositoryVerbs } from "../verbs.ts";

it("matches the recorded help", async () => {
  await expect(recordHelp([...rootVerbs, ...repositoryVerbs])).toMatchFileSnapshot("help.txt");
});
