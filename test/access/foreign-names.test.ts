/** What callers can find out about other users' names from the work that rejecting them takes. */
import { DefaultQueryExecutor } from "kysely";
import { expect, it, onTestFinished, vi } from "vitest";
import { KmsService, SignStreamHeaderSchema } from "#gen/kms/kms_service_pb.ts";
import { present } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { outcomeOf } from "../support/refusal.ts";
import { streamOf } from "../support/streams.ts";
import { describeAccess, makePeople, type Person } from "./access-server.ts";

const data = bytesOf("hello");
type Call = (kms: Person["kms"], keyId: string) => Promise<unknown>;

async function encryptOwn(kms: Person["kms"]): Promise<Uint8Array> {
  const { keyId } = present((await kms.createKey({ usage: "ENCRYPT" })).result);
  return present((await kms.encrypt({ keyId, plaintext: data })).result).ciphertext;
}

/** Every call that takes a key handle. */
const calls: Readonly<Record<string, Call>> = {
  getKey: (kms, keyId) => kms.getKey({ keyId }),
  rotateKey: (kms, keyId) => kms.rotateKey({ keyId }),
  disableKey: (kms, keyId) => kms.disableKey({ keyId }),
  enableKey: (kms, keyId) => kms.enableKey({ keyId }),
  destroyKey: (kms, keyId) => kms.destroyKey({ keyId }),
  restoreKey: (kms, keyId) => kms.restoreKey({ keyId }),
  createGrant: (kms, keyId) => kms.createGrant({ keyId, grantee: "nobody", operations: ["SIGN"] }),
  listGrants: (kms, keyId) => kms.listGrants({ keyId }),
  sign: (kms, keyId) => kms.sign({ keyId, data }),
  signStream: (kms, keyId) =>
    kms.signStream(
      streamOf(
        { part: { case: "header" as const, value: { keyId } } },
        { part: { case: "chunk" as const, value: data } },
      ),
    ),
  batchSign: (kms, keyId) => kms.batchSign({ keyId, data: [data] }),
  createCsr: (kms, keyId) => kms.createCsr({ keyId, subject: "CN=release" }),
  verify: (kms, keyId) => kms.verify({ keyId, data, signature: new Uint8Array(2420) }),
  encapsulate: (kms, keyId) => kms.encapsulate({ keyId }),
  decapsulate: (kms, keyId) => kms.decapsulate({ keyId, ciphertext: new Uint8Array(1088) }),
  encrypt: (kms, keyId) => kms.encrypt({ keyId, plaintext: data }),
  decrypt: async (kms, keyId) => kms.decrypt({ ciphertext: await encryptOwn(kms), keyId }),
  reEncrypt: async (kms, keyId) => kms.reEncrypt({ ciphertext: await encryptOwn(kms), keyId }),
  getAuditLog: (kms, keyId) => kms.getAuditLog({ keyId }),
  // No log is that long, so the stream ends once its filter has been built.
  watchAuditLog: async (kms, keyId) => {
    for await (const entry of kms.watchAuditLog({ keyId, afterSequence: 1_000_000 })) return entry;
  },
};

/** Finds statements about keys, names, grants and accounts. The server's own polls look for due work. */
const isOfCall = (statement: string): boolean =>
  /"(users|oauth_clients|kms_\w+)"/.test(statement) &&
  !/(destroy|rotation|expires)_at_ms"? <=/.test(statement);

/** Finds reads of a key by its ID: of the caller's own key, which the cache of a slow server may have dropped. */
const isOfOwnKey = (statement: string): boolean =>
  /from "kms_keys" where (1 = 1 and )?"key_id" = \S+$/.test(statement);
const withOwnKey = ["decrypt", "reEncrypt"];

/** Starts recording statements. */
function recordStatements(): { take(): string[] } {
  let statements: string[] = [];
  const { executeQuery } = DefaultQueryExecutor.prototype;
  const spy = vi.spyOn(DefaultQueryExecutor.prototype, "executeQuery").mockImplementation(function (
    this: DefaultQueryExecutor,
    query,
    options,
  ) {
    if (isOfCall(query.sql)) statements.push(query.sql);
    return executeQuery.call(this, query, options) as never;
  });
  onTestFinished(() => spy.mockRestore());
  return {
    take() {
      const taken = statements;
      statements = [];
      return taken;
    },
  };
}

describeAccess("another user's key name", (shared) => {
  it.each(Object.entries(calls))("takes as many queries whether it exists or not: %s", async (name, call) => {
    const [victim, mallory] = await makePeople(await shared());
    await victim.kms.createKey({ algorithm: "ML-DSA-44", name: "existing" });
    // The key is now in the cache.
    await victim.kms.sign({ keyId: "name/existing", data });
    await outcomeOf(call(mallory.kms, "name/warm"));
    const recorded = recordStatements();
    const look = async (handle: string) => {
      recorded.take();
      const outcome = await outcomeOf(call(mallory.kms, handle));
      // A watch also reads its caller again now and then.
      const statements = name === "watchAuditLog" ? [...new Set(recorded.take())] : recorded.take();
      const isIgnored = withOwnKey.includes(name) ? isOfOwnKey : () => false;
      return { outcome, statements: statements.filter((statement) => !isIgnored(statement)) };
    };
    for (const version of ["", "/1"]) {
      const [existing, missing, nobody] = [
        await look(`user/${victim.name}/name/existing${version}`),
        await look(`user/${victim.name}/name/none${version}`),
        await look(`user/nobody/name/existing${version}`),
      ];
      expect(existing.statements.length).toBeGreaterThan(1);
      expect(missing).toEqual(existing);
      expect(nobody).toEqual(existing);
    }
  });
});

it("is tested with every call that takes a handle", () => {
  const taking = KmsService.methods.filter(({ input }) =>
    [...input.fields, ...(input.name === "SignStreamRequest" ? SignStreamHeaderSchema.fields : [])].some(
      ({ name }) => name === "key_id",
    ),
  );
  expect(Object.keys(calls).sort()).toEqual(taking.map(({ localName }) => localName).sort());
});
