/** Snapshot of the help text. To update it: npx vitest run extensions/wireguard/test/help.test.ts -u */
import { expect, it } from "vitest";
import { recordHelp } from "../../../test/cli/recorded-help.ts";
import { wireguard } from "../extension.ts";

it("matches the recorded help", async () => {
  const verbs = await Promise.all((wireguard.verbs ?? []).map(({ load }) => load()));
  await expect(recordHelp(verbs.flat())).toMatchFileSnapshot("help.txt");
});
