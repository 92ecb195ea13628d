/** When a new master key becomes durable. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isMissing, run } from "../interop/tools.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const watched = isMissing("strace") ? "needs strace, which is not installed" : "observed with strace";

describe.skipIf(isMissing("strace"))(`a new master key, ${watched},`, { timeout: 120_000 }, () => {
  it("is on disk with its name, and the directory with its own, before anything is sealed with it", async () => {
    const above = makeTemporaryDirectory();
    const path = join(above, "new", "directory", "master.key");
    const trace = join(makeTemporaryDirectory(), "trace");
    const source = join(import.meta.dirname, "../../src/secrets/master-key.ts");
    const program = `import { createKeyFile } from ${JSON.stringify(source)}; createKeyFile(${JSON.stringify(path)})`;
    const flags = ["-f", "-y", "-e", "trace=link,linkat,fsync,fdatasync", "-o", trace];
    const node = [process.execPath, "--input-type=module", "-e", program];
    expect(await run("strace", [...flags, ...node])).toMatchObject({ code: 0 });
    const lines = readFileSync(trace, "utf8").split("\n");
    const linked = lines.findIndex((line) => line.includes("link") && line.includes(path));
    const syncedAfter = (directory: string) =>
      lines.findLastIndex((line) => line.includes(`<${directory}>`)) > linked;
    expect(linked).toBeGreaterThan(0);
    expect(lines.slice(0, linked).join()).toMatch(/sync\(\d+<[^>]*master\.key\.[0-9a-f]+>/);
    expect(syncedAfter(join(above, "new", "directory"))).toBe(true);
    expect([above, join(above, "new")].map((directory) => lines.join().includes(`<${directory}>`))).toEqual([
      true,
      true,
    ]);
  });
});
