/**
 * Records uses of a key as fast as the store accepts them, without signatures or network:
 * `node audit-writer.ts '<WriterInput as JSON>'`. Prints WriterResult as JSON.
 */
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { DatabaseLocation } from "../../src/database/database.ts";
import { systemPrincipal } from "../../src/records/ownership.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { createKey } from "../../src/services/kms/create.ts";
import { eventBy, unknownSubject } from "../../src/services/kms/event.ts";
import { createKmsStore } from "../../src/services/kms/store.ts";
import { openStore } from "../support/open-store.ts";
import { systemCaller } from "../support/system-caller.ts";

/** The measurement to make. */
export interface WriterInput {
  readonly location: DatabaseLocation;
  /** Folder with the master key. */
  readonly dataDir: string;
  /** Uses in flight: calls that wait for their entry. */
  readonly inFlight: number;
  /** Start and end, in milliseconds of Date.now(), so that several writers measure the same interval. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The measurement. */
export interface WriterResult {
  readonly entries: number;
  readonly transactions: number;
  /** CPU time of this process for each entry, in microseconds. */
  readonly cpuPerEntry: number;
}

const input = JSON.parse(process.argv[2] ?? "") as WriterInput;
const provider = await createCryptoProvider("auto");
let transactions = 0;
const store = await openStore({
  location: input.location,
  masterKey: masterKeyIn(input.dataDir),
  provider,
  onCommit: () => {
    transactions += 1;
  },
});
const keys = createKmsStore(store);
const { keyId } = await createKey(
  { provider, store, keys, now: () => new Date() },
  {
    alias: "bench",
    algorithm: "ML-DSA-65",
    usage: "SIGN",
    name: "",
    rotationPeriodSeconds: undefined,
    labels: {},
  },
  systemCaller,
);
const tag = (await keys.find(keyId))?.tag ?? "";
const use = {
  keys: [{ keyId, tag, grant: undefined }],
  events: [
    eventBy(systemPrincipal, unknownSubject(keyId), {
      operation: "SIGN",
      outcome: "OK",
      details: "input=data",
    }),
  ],
};

async function recordUntil(endMs: number): Promise<number> {
  let entries = 0;
  const record = async (): Promise<void> => {
    while (Date.now() < endMs) {
      if (!(await keys.recordUse(use))) throw new Error("the key has changed");
      entries += 1;
    }
  };
  await Promise.all(Array.from({ length: input.inFlight }, record));
  return entries;
}

await recordUntil(input.fromMs);
transactions = 0;
const startCpu = process.cpuUsage();
const entries = await recordUntil(input.untilMs);
const { user, system } = process.cpuUsage(startCpu);
const result: WriterResult = { entries, transactions, cpuPerEntry: (user + system) / entries };
process.stdout.write(JSON.stringify(result));
process.exit(0);
