import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { toPublicJwk } from "../../src/crypto/jwk.ts";
import { signJwt } from "../../src/crypto/jwt.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type PqcServer, startPqcServer } from "./pqc-server.ts";

const startMs = Date.UTC(2026, 0, 1, 12, 0, 0);
const lifetimeMs = 3_600_000;

describe("the issuing key", () => {
  it("survives a restart, and so do its tokens", async () => {
    const dataDir = makeTemporaryDirectory();
    const [token, keys] = await visit(dataDir, startMs, async ({ tokens }) => [
      (await tokens.issueToken({ username: "ada" })).token,
      (await tokens.getJwks({})).keys,
    ]);
    const answers = await visit(dataDir, startMs + 1000, async ({ tokens }) => [
      (await tokens.getJwks({})).keys,
      (await tokens.verifyToken({ token })).valid,
    ]);
    expect(answers).toEqual([keys, true]);
  });

  it("is in the store only in sealed form", async () => {
    const dataDir = makeTemporaryDirectory();
    await visit(dataDir, startMs, async ({ tokens }) => tokens.getHealth({}));
    const database = new DatabaseSync(join(dataDir, "qsp.db"));
    onTestFinished(() => database.close());
    const key = database.prepare("select * from issuer_keys").get() ?? {};
    const publicBytes = Object.values(key).filter((value) => value instanceof Uint8Array);
    expect(publicBytes).toEqual([key.public_key]);
    const secret = database
      .prepare("select * from sealed_secrets where identity = ?")
      .get(`issuer_keys/${key.key_id}/seed`);
    // 12 bytes of nonce, 32 of seed or key, 16 of tag.
    expect(secret?.ciphertext).toHaveLength(60);
    expect(secret?.wrapped_data_key).toHaveLength(60);
  });

  it("stays in the key set for 3600 seconds after retirement, and its tokens stay valid", async () => {
    const dataDir = makeTemporaryDirectory();
    const { token, keys } = await visit(dataDir, startMs, async ({ tokens }) => ({
      token: (await tokens.issueToken({ username: "ada" })).token,
      keys: (await tokens.getJwks({})).keys,
    }));
    await visit(dataDir, startMs + 1000, (server) => server.rotateKey());
    const [newKeys, answer, newToken] = await visit(dataDir, startMs + 2000, async ({ tokens }) => [
      (await tokens.getJwks({})).keys,
      await tokens.verifyToken({ token }),
      (await tokens.issueToken({ username: "grace" })).token,
    ]);
    expect(newKeys).toHaveLength(2);
    expect(newKeys[1]).toEqual(keys[0]);
    expect(answer.valid).toBe(true);
    expect(Buffer.from(newToken.split(".")[0] ?? "", "base64url").toString()).toContain(
      newKeys[0]?.kid ?? "?",
    );

    const laterKeys = await visit(
      dataDir,
      startMs + 2000 + lifetimeMs,
      async ({ tokens }) => (await tokens.getJwks({})).keys,
    );
    expect(laterKeys).toEqual([newKeys[0]]);
  });

  it("leaves the key set of a running server once its last token has expired", async () => {
    const dataDir = makeTemporaryDirectory();
    await visit(dataDir, startMs + 1000, (server) => server.rotateKey());
    let nowMs = startMs + 2000;
    const server = await startPqcServer(dataDir, () => new Date(nowMs));
    onTestFinished(() => server.close());
    expect((await server.tokens.getJwks({})).keys).toHaveLength(2);
    nowMs += lifetimeMs;
    expect((await server.tokens.getJwks({})).keys).toHaveLength(1);
  });
});

describe("an inserted key in the issuer's table", () => {
  const insertKey = (dataDir: string, row: Record<string, string | number | Uint8Array | null>): void => {
    const database = new DatabaseSync(join(dataDir, "qsp.db"));
    const names = Object.keys(row);
    database
      .prepare(`insert into issuer_keys (${names}) values (${names.map(() => "?")})`)
      .run(...Object.values(row));
    database.close();
  };

  it.each([
    ["as if it signed", null, "0".repeat(64)],
    ["as if it had just been retired", startMs, "0".repeat(64)],
    ["without a tag", null, ""],
  ])("%s is not in the key set, and its tokens are rejected", async (_how, retiredAtMs, tag) => {
    const dataDir = makeTemporaryDirectory();
    const server = await startPqcServer(dataDir, () => new Date(startMs));
    const { token } = await server.tokens.issueToken({ username: "ada" });
    const { keys } = await server.tokens.getJwks({});
    const { publicKey, secretKey } = await server.provider.generateKeyPair("ML-DSA-65");
    const { kid } = toPublicJwk(publicKey);
    insertKey(dataDir, {
      key_id: kid,
      algorithm: "ML-DSA-65",
      public_key: publicKey.exportRaw(),
      created_at_ms: startMs,
      retired_at_ms: retiredAtMs,
      record_tag: tag,
    });
    const [iat, exp] = [startMs / 1000, startMs / 1000 + 3600];
    const payload = { sub: "ada", iat, exp };
    const forged = await signJwt(server.provider, secretKey, { keyId: kid, header: {}, payload });
    expect((await server.tokens.getJwks({})).keys).toEqual(keys);
    expect(await server.tokens.verifyToken({ token: forged })).toMatchObject({ valid: false });
    expect(await server.tokens.verifyToken({ token })).toMatchObject({ valid: true });
    await server.rotateKey();
    expect((await server.tokens.getJwks({})).keys.map((key) => key.kid)).not.toContain(kid);
    await server.close();
    const keysLater = await visit(dataDir, startMs, async ({ tokens }) => (await tokens.getJwks({})).keys);
    expect(keysLater.map((key) => key.kid)).not.toContain(kid);
  });
});

/** Opens a server on a data directory at a given time, queries it, and closes it. */
async function visit<T>(dataDir: string, nowMs: number, ask: (server: PqcServer) => Promise<T>): Promise<T> {
  const server = await startPqcServer(dataDir, () => new Date(nowMs));
  try {
    return await ask(server);
  } finally {
    await server.close();
  }
}

describe("the health of both services", () => {
  it("is DOWN when signing is impossible", async () => {
    const server = await startPqcServer(makeTemporaryDirectory());
    try {
      await server.provider.close();
      expect(await server.pqc.getHealth({})).toMatchObject({ status: "success", serviceStatus: "DOWN" });
      expect(await server.tokens.getHealth({})).toMatchObject({
        serviceStatus: "DOWN",
        cryptoProviderActive: false,
      });
    } finally {
      await server.close();
    }
  });
});
