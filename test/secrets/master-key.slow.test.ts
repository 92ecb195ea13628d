/** When a new master key becomes durable, and a rotation that is killed or whose disk fails. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { nameMasterKey } from "../../src/crypto/sealing.ts";
import { readPreviousKeys } from "../../src/secrets/master-key.ts";
import { runWithFault } from "../faults/strace.ts";
import { isMissing, run } from "../interop/tools.ts";
import { makePostgresPlace, makeSqlitePlace, type Place } from "../support/on-both.ts";
import { main } from "../support/program.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import {
  expectSecrets,
  leaveSecrets,
  readKey,
  readKeyIds,
  readPreviousKey,
  rewrap,
  rotate,
} from "./rewrap-place.ts";

describe("a killed master-key rotate", () => {
  it.each([
    { kind: "SQLite", makePlace: makeSqlitePlace, kills: 4, count: 3000 },
    { kind: "PostgreSQL", makePlace: makePostgresPlace, kills: 1, count: 1200 },
  ])(
    "leaves a $kind store that opens, $kills times, and finally completes",
    { timeout: 120_000 },
    async ({ makePlace, kills, count }) => {
      const { place, secrets } = await leaveSecrets(count, { makePlace });
      let interrupted = 0;
      for (let kill = 0; kill < kills; kill++) {
        interrupted += (await rotateAndKill(place)) === "SIGKILL" ? 1 : 0;
        await expectSecrets(place, secrets);
      }
      expect(interrupted).toBeGreaterThan(0);
      expect(await rotate(place)).toMatchObject({ code: 0 });
      expect(existsSync(`${place.keyFile}.next`)).toBe(false);
      expect(await readKeyIds(place)).toEqual([nameMasterKey(readKey(place))]);
      await expectSecrets(place, secrets);
    },
  );
});

const killed = isMissing("strace") ? "needs strace, which is not installed" : "with strace";
describe.skipIf(isMissing("strace"))(`master-key rotate, killed ${killed},`, () => {
  it.each([
    { moment: "before it moved the previous key", when: 1 },
    { moment: "before it saved the current key", when: 2 },
    { moment: "before it installed the next key", when: 3 },
  ])("$moment keeps all keys, and completes later", { timeout: 180_000 }, async ({ when }) => {
    const { place, secrets } = await leaveSecrets(3);
    await rewrap(place);
    const [older, present] = [readPreviousKey(place), readKey(place)];
    const readKeys = () => readPreviousKeys(place.keyFile).values().toArray();
    await runWithFault(`rename:signal=KILL:when=${when}`, "master-key", "rotate", ...place.settings);
    const next = Buffer.from(readFileSync(`${place.keyFile}.next`, "utf8").trim(), "hex");
    expect(readKey(place)).toEqual(present);
    expect(readKeys()).toEqual(when === 3 ? [present, older] : [older]);
    await expectSecrets(place, secrets);
    expect(await rotate(place)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^This run moved 0 /),
    });
    expect([readKey(place), readPreviousKey(place)]).toEqual([next, present]);
    expect(readKeys()).toEqual([present, older]);
    await expectSecrets(place, secrets);
  });
});

describe.skipIf(isMissing("strace"))(`master-key rotate on a failing disk, ${killed},`, () => {
  it.each([1, 2])(
    "fails at rename %i with one sentence, and completes later",
    { timeout: 180_000 },
    async (when) => {
      const { place, secrets } = await leaveSecrets(3);
      const args = ["master-key", "rotate", ...place.settings];
      expect(await runWithFault(`rename:error=EIO:when=${when}`, ...args)).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(
          /^qsp: [^\n]*master\.key\S* cannot be written: its disk reports an error[^\n]*$/m,
        ),
      });
      expect(await rotate(place)).toMatchObject({ code: 0 });
      await expectSecrets(place, secrets);
    },
  );
});

/**
 * Rotates, and kills the program up to 150 ms after it has started to move secrets.
 *
 * @returns the signal, if it came in time
 */
async function rotateAndKill(place: Place): Promise<NodeJS.Signals | null> {
  const before = JSON.stringify(await countByKey(place));
  const child = spawn(process.execPath, [main, "master-key", "rotate", ...place.settings], {
    stdio: "ignore",
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exit = once(child, "exit");
  const hasBegun = async () => isOver(child) || JSON.stringify(await countByKey(place)) !== before;
  await expect.poll(hasBegun, { interval: 5 }).toBe(true);
  // A random moment is the point of this test; nothing waits for this delay.
  await setTimeout(randomInt(0, 150));
  child.kill("SIGKILL");
  const [, signal] = await exit;
  return signal;
}

function isOver({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function countByKey({ query }: Place) {
  return query("select master_key_id, count(*) as count from sealed_secrets group by 1 order by 1");
}

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
