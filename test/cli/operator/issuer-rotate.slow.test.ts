/** qsp issuer rotate when it is killed. */
import { describe, expect, it } from "vitest";
import { openIssuer } from "../../../src/identity/issuer.ts";
import { runWithFault } from "../../faults/strace.ts";
import { isMissing } from "../../interop/tools.ts";
import { makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { keysOf, openParts } from "./issuer-place.ts";

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
