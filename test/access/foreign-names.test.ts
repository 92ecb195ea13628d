/** What a caller can learn about the names of other users from the work that their refusals take. */
import { DefaultQueryExecutor } from "kysely";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { KmsService, SignStreamHeaderSchema } from "#gen/kms/kms_service_pb.ts";
import { present } from "../services/answers.ts";
import { endAfterAll } from "../support/at-end.ts";
import { bytesOf } from "../support/bytes.ts";
import { outcomeOf } from "../support/refusal.ts";
import { type AccessServer, makePeople, type Person, startAccessServer, timeout } from "./access-server.ts";

const data = bytesOf("hello");
type Call = (kms: Person["kms"], keyId: string) => Promise<unknown>;

async function encryptOwn(kms: Person["kms"]): Promise<Uint8Array> {
  const { keyId } = present((await kms.createKey({ usage: "ENCRYPT" })).result);
  return present((await kms.encrypt({ keyId, plaintext: data })).result).ciphertext;
}

/** Every call that takes the handle of a key. */
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
      (async function* () {
        yield { part: { case: "header" as const, value: { keyId } } };
        yield { part: { case: "chunk" as const, value: data } };
      })(),
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
  // No log is that long, so the stream ends once its filter is made.
  watchAuditLog: async (kms, keyId) => {
    for await (const entry of kms.watchAuditLog({ keyId, afterSequence: 1_000_000 })) return entry;
  },
};

/** Finds the statements about keys, names, grants and accounts. Polls of the server look for due work. */
const isOfCall = (statement: string): boolean =>
  /"(users|oauth_clients|kms_\w+)"/.test(statement) &&
  !/(destroy|rotation|expires)_at_ms"? <=/.test(statement);

/** Starts to record statements. */
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

describe("a name of another user", { timeout }, () => {
  const atEnd = endAfterAll();
  let server: AccessServer;
  beforeAll(async () => {
    server = await startAccessServer({ atEnd });
  });

  it.each(Object.entries(calls))("takes as many queries if it exists as if not: %s", async (_, call) => {
    const [victim, mallory] = await makePeople(server);
    await victim.kms.createKey({ algorithm: "ML-DSA-44", name: "there" });
    // Now the cache has the key.
    await victim.kms.sign({ keyId: "name/there", data });
    await outcomeOf(call(mallory.kms, "name/warm"));
    const recorded = recordStatements();
    const look = async (handle: string) => {
      recorded.take();
      const outcome = await outcomeOf(call(mallory.kms, handle));
      return { outcome, statements: recorded.take() };
    };
    for (const version of ["", "/1"]) {
      const [existing, missing, stranger] = [
        await look(`user/${victim.name}/name/there${version}`),
        await look(`user/${victim.name}/name/none${version}`),
        await look(`user/nobody/name/there${version}`),
      ];
      expect(existing.statements.length).toBeGreaterThan(1);
      expect(missing).toEqual(existing);
      expect(stranger).toEqual(existing);
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
