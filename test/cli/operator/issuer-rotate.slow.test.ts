/** qsp issuer rotate under load, and when it is killed. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openIssuer } from "../../../src/identity/issuer.ts";
import { runWithFault } from "../../faults/strace.ts";
import { isMissing } from "../../interop/tools.ts";
import { describeStores, type MakePlace, makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { keyIdOf, startTokenServer, type TokenServer } from "./command-line.ts";
import { addAda, keysOf, logIn, openParts, rotate } from "./issuer-place.ts";

describeStores("qsp issuer rotate", (makePlace: MakePlace) => {
  it("loses no login and no token while many users log in on two servers", async () => {
    const place = await makePlace();
    const servers = [await startTokenServer(place), await startTokenServer(place)];
    await addAda(place);
    const load = startLoggingIn(servers);
    await load.reaches(20);
    const newIds = [await rotate(place), await rotate(place)];
    await load.reaches(20);
    const { tokens, failures } = await load.stop();
    expect(failures).toEqual([]);
    expect(new Set(tokens.map(keyIdOf)).size).toBeGreaterThanOrEqual(2);
    expect(tokens.slice(-2).map(keyIdOf)).toEqual([newIds[1], newIds[1]]);
  });
});

const strace = isMissing("strace") ? "strace, which is not installed" : "strace";
describe.skipIf(isMissing("strace"))(`qsp issuer rotate, killed by ${strace},`, { timeout: 180_000 }, () => {
  it("before and after its commit, leaves one signing key with its seed", async () => {
    const place = await makeSqlitePlace();
    const { parts } = await openParts(place);
    (await openIssuer(parts)).close();
    const outcomes = new Set<string>();
    let before = await keysOf(place);
    // Each run is killed at a disk sync, one sync later than the run before.
    for (let isKilled = true, sync = 1; isKilled; sync += 1) {
      isKilled = await rotateUntilSync(place, sync);
      const keys = await keysOf(place);
      expect(keys.filter(({ signs }) => signs)).toHaveLength(1);
      expect(keys.filter(({ signs, hasSeed }) => signs !== hasSeed)).toEqual([]);
      outcomes.add(`${isKilled ? "killed" : "ended"} with ${keys.length - before.length} more`);
      before = keys;
      const issuer = await openIssuer(parts);
      expect(await issuer.isWorking()).toBe(true);
      await issuer.close();
    }
    expect(outcomes).toEqual(new Set(["killed with 0 more", "killed with 1 more", "ended with 1 more"]));
  });
});

/**
 * Rotates until the n-th file sync, at which the program is killed.
 *
 * @returns whether it got that far
 */
async function rotateUntilSync(place: Pick<Place, "settings">, n: number): Promise<boolean> {
  const fault = `fsync,fdatasync:signal=KILL:when=${n}`;
  const { code } = await runWithFault(fault, "issuer", "rotate", ...place.settings);
  expect([0, 137]).toContain(code);
  return code === 137;
}

/** Logs in repeatedly on each server, and uses each token on the other one, until stopped. */
function startLoggingIn(servers: readonly TokenServer[]) {
  const tokens: string[] = [];
  const failures: unknown[] = [];
  let isStopped = false;
  onTestFinished(() => {
    isStopped = true;
  });
  const running = servers.map(async (server, i) => {
    const other = servers[(i + 1) % servers.length] ?? server;
    while (!isStopped) {
      try {
        const token = await logIn(server);
        tokens.push(token);
        await other.useToken(token);
      } catch (error) {
        failures.push(error);
      }
    }
  });
  return {
    /** Waits for this many more logins. */
    reaches: (more: number) => {
      const wanted = tokens.length + more;
      return vi.waitUntil(() => tokens.length >= wanted || failures.length > 0, { timeout: 100_000 });
    },
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
      return { tokens, failures };
    },
  };
}
