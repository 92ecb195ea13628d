/** The flags that this extension's examples and access rows need. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AtEnd } from "../../../test/support/at-end.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { formatVerifierKey } from "../verifier-keys.ts";
import { witness } from "./witness.ts";

export function makeFlags(atEnd: AtEnd): readonly string[] {
  const witnesses = join(makeTemporaryDirectory(atEnd), "witnesses");
  writeFileSync(witnesses, `${formatVerifierKey(witness.key)}\n`);
  return ["--audit-log-public", "--witnesses", witnesses];
}
