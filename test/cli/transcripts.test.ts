/** The recorded transcripts, each against a separate server. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { useGuardedServer } from "./guarded-server.ts";
import { timeout, useServer } from "./qsp.ts";
import { replay } from "./transcript.ts";

vi.mock("node:crypto", async (load) => (await import("../support/cheap-scrypt.ts")).cheapen(await load()));

/** An address where nobody listens. */
const nowhere = "http://127.0.0.1:1";
/** Starts the servers of transcripts that need one. */
const servers: Readonly<Record<string, () => { readonly url: string }>> = {
  "kms.txt": useServer,
  "kms-only.txt": () => useServer({ QSP_SERVICES: "kms" }),
  "login.txt": useGuardedServer,
  "services.txt": useServer,
};

for (const path of globSync(join(import.meta.dirname, "transcripts/*.txt")).sort()) {
  const name = basename(path);
  describe(`the transcript ${name}`, { timeout }, () => {
    const server = servers[name]?.();

    it("matches what qsp prints", async () => {
      const replayed = await replay(readFileSync(path, "utf8"), server?.url ?? nowhere);
      await expect(replayed).toMatchFileSnapshot(path);
    });
  });
}
