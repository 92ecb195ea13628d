/** Cost of server-held keys: signing with them, the audit log on disk, and long lists. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { sqliteIn } from "../../src/database/database.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { openStore } from "../support/open-store.ts";
import { showProgress } from "./results.ts";
import { type Child, compare, grpc, load, post, rawProvider, start } from "./tools.ts";

/** Keys in the long list. */
const listedKeys = 1_000_000;

export async function measureKms(app: Child, dataDir: string): Promise<void> {
  const { result } = await post(app, "/api/kms/create-key", { alias: "bench" });
  const data = Buffer.alloc(32, 1);
  const signRequest = grpc(KmsService.method.sign, { keyId: result.keyId, data });
  const sign = async (): Promise<number> => (await load(app.url, signRequest)).callsPerSecond;
  await compare(
    "Sign with a stored key over gRPC, audit entry on the disk, against the provider's signature",
    "reach 0.7",
    sign,
    () => rawProvider("sign"),
  );
  const { p50Ms, p99Ms } = await load(app.url, signRequest);
  const alone = await load(app.url, { ...signRequest, inFlight: 1 });
  console.log(`  one call of these: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`);
  console.log(`  a caller alone: p50 ${alone.p50Ms.toFixed(1)} ms, p99 ${alone.p99Ms.toFixed(1)} ms`);

  const batchOf = 100;
  const batch = { keyId: result.keyId, data: Array(batchOf).fill(data) };
  const batchRequest = grpc(KmsService.method.batchSign, batch);
  await compare(
    `BatchSign of ${batchOf} against ${batchOf} Signs, in signatures`,
    "no target",
    async () => (await load(app.url, { ...batchRequest, inFlight: 4 })).callsPerSecond * batchOf,
    sign,
  );
  await measureList(join(dataDir, "list"));
}

async function measureList(dataDir: string): Promise<void> {
  showProgress(`making a list of ${listedKeys.toLocaleString("en")} keys`);
  await fillList(dataDir);
  showProgress();
  const app = await start("app-server.ts", dataDir);
  try {
    let pageToken = "";
    for (let page = 1; page < 1000; page += 1) {
      const answer = await get(app, `/api/kms/keys?pageToken=${pageToken}`);
      pageToken = answer.nextPageToken;
    }
    const read = (token: string) => async (): Promise<number> =>
      (await load(app.url, { path: `/api/kms/keys?pageToken=${token}`, method: "GET", inFlight: 4 }))
        .callsPerSecond;
    await compare(
      `ListKeys, page 1 against page 1,000 of ${listedKeys.toLocaleString("en")} keys`,
      "stay between 0.67 and 1.5",
      read(""),
      read(pageToken),
    );
  } finally {
    app.send("stop");
  }
}

/** Inserts rows of realistic size. Nobody signs with these keys. */
async function fillList(dataDir: string): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  const location = sqliteIn(dataDir);
  await (await openStore({ location, masterKey: masterKeyIn(dataDir), provider })).close();
  await provider.close();
  if (location.kind !== "sqlite") throw new Error("the long list requires SQLite");
  const database = new DatabaseSync(location.path);
  database.exec("pragma synchronous = off; begin");
  database.exec(`
    with recursive counter(n) as (select 1 union all select n + 1 from counter where n < ${listedKeys})
    insert into kms_keys select n, 'key-' || lower(hex(randomblob(16))), 'bench', 'ML-DSA-65', 'SIGN', 'ACTIVE',
      zeroblob(1952), 'system', n, lower(hex(randomblob(32))) from counter`);
  database.exec(`insert into list_counts values ('kms_keys', ${listedKeys}); commit`);
  database.close();
}

// biome-ignore lint/suspicious/noExplicitAny: the measured service defines the answers
async function get(app: Child, path: string): Promise<any> {
  return (await fetch(app.url + path)).json();
}
