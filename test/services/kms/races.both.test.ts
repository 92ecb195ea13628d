/**
 * Callers and schedules that race for the state of a key: each state has one winner, and no signature slips
 * through.
 */
import { expect, it } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { bytesOf } from "../../support/bytes.ts";
import { present } from "../answers.ts";
import { move, type State } from "./key-states.ts";
import { describeKmsOnBoth, type KmsServer, startKmsServer } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const data = bytesOf("hello");
const callers = 64;
const callsOfEach = 6;

/** What a caller may do next, chosen at random. */
const deeds: readonly ((kms: KmsServer["kms"], keyId: string) => Promise<unknown>)[] = [
  (kms, keyId) => kms.sign({ keyId, data }),
  (kms, keyId) => kms.sign({ keyId, data }),
  (kms, keyId) => kms.disableKey({ keyId }),
  (kms, keyId) => kms.enableKey({ keyId }),
  (kms, keyId) => kms.enableKey({ keyId }),
  (kms, keyId) => kms.rotateKey({ keyId }),
  (kms, keyId) => kms.destroyKey({ keyId, afterSeconds: 1 }),
  (kms, keyId) => kms.restoreKey({ keyId }),
];

/** Follows a key's states through its entries; returns the entries that its state did not allow. */
function findForbidden(entries: readonly AuditEntry[]): string[] {
  let state: State = "ACTIVE";
  let wasRotated = false;
  const forbidden: string[] = [];
  for (const { operation, outcome, sequence } of entries) {
    if (outcome !== "OK" || operation === "CREATE") continue;
    if (operation === "SIGN") {
      if (state !== "ACTIVE") forbidden.push(`${sequence} SIGN while ${state}`);
      continue;
    }
    const next = move(state, operation, wasRotated);
    if (next === undefined) forbidden.push(`${sequence} ${operation} while ${state}`);
    wasRotated ||= operation === "ROTATE";
    state = next ?? state;
  }
  return forbidden;
}

describeKmsOnBoth("64 callers on two servers who race for one name", (start) => {
  it("win each state once, and get signatures only from versions that were ACTIVE", async () => {
    const one = await start();
    const other = await startKmsServer({ database: one.database });
    const { kms } = one;
    await kms.createKey({ algorithm: "ML-DSA-44", name: "contested" });
    let isRacing = true;
    const schedules = (async () => {
      while (isRacing) await Promise.all([one.doDueWork(), other.doDueWork()]);
    })();
    const race = async (_: unknown, i: number): Promise<void> => {
      const { kms: mine } = i % 2 === 0 ? one : other;
      for (let call = 0; call < callsOfEach; call += 1) {
        const deed = present(deeds[Math.floor(Math.random() * deeds.length)]);
        await deed(mine, "name/contested").catch(() => {});
      }
    };
    await Promise.all(Array.from({ length: callers }, race));
    isRacing = false;
    await schedules;
    const entries = await readAudit(kms, "name/contested");
    const byKey = Map.groupBy(entries, ({ keyId }) => keyId);
    const { versions } = await kms.getKey({ keyId: "name/contested" });
    expect([...byKey.keys()].sort()).toEqual(versions.map(({ keyId }) => keyId).sort());
    expect([...byKey.values()].flatMap(findForbidden)).toEqual([]);
    expect(versions.filter(({ isPrimary }) => isPrimary)).toHaveLength(1);
    expect(versions.map(({ version }) => version)).toEqual(versions.map((_, i) => i + 1));
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true });
  });
});
