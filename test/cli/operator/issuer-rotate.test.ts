/** qsp issuer rotate: a new key signs tokens, and what becomes of those of the keys before. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { sqliteIn } from "../../../src/database/database.ts";
import { openIssuer, rotateIssuerKey } from "../../../src/identity/issuer.ts";
import { createIssuerStore, type IssuerStore } from "../../../src/identity/issuer-store.ts";
import { createUserStore } from "../../../src/identity/users.ts";
import { openStore } from "../../../src/open-store.ts";
import { masterKeyIn } from "../../../src/secrets/master-key.ts";
import { hashCheaply } from "../../access/access-server.ts";
import { isMissing } from "../../interop/tools.ts";
import { refusal } from "../../refusal.ts";
import { describeStores, type MakePlace, type Place, type Row } from "../../storage/on-both.ts";
import { makeTemporaryDirectory } from "../../temporary-directory.ts";
import { keyIdOf, main, runCommand, startTokenServer, type TokenServer } from "./command-line.ts";

const timeout = 60_000;
const password = "correct horse battery staple";
const unknownKey = { code: "Unauthenticated", reason: "TOKEN_KEY_UNKNOWN" };

/** Milliseconds after which a revoked key is out everywhere: a look a second, and a machine with other work. */
const revokedWithinMs = 2000;

/** Adds the user whose tokens are issued here. */
async function addAda(place: Place): Promise<void> {
  const store = await place.open();
  await createUserStore(store).add(
    { name: "ada", role: "user", passwordHash: hashCheaply(password) },
    new Date(),
  );
  await store.close();
}

/** Rotates, as an operator does. @returns the identifier of the new key, as it is printed */
async function rotate(place: Pick<Place, "settings">, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(place, ["issuer", "rotate", ...words]);
  expect([code, stderr]).toEqual([0, ""]);
  const [, keyId = ""] = /^Tokens are signed with the key (\S+) from now on\. /.exec(stdout) ?? [];
  expect(keyId).not.toBe("");
  return keyId;
}

/** The keys in the database, with whether there is a seed of each; the one that signs first. */
async function keysOf(
  place: Pick<Place, "query">,
): Promise<{ keyId: unknown; signs: boolean; hasSeed: boolean }[]> {
  const rows = await place.query(
    `select k.key_id, k.retired_at_ms, s.identity from issuer_keys k
     left join sealed_secrets s on s.identity = 'issuer_keys/' || k.key_id || '/seed'
     order by case when k.retired_at_ms is null then 0 else 1 end, k.created_at_ms desc`,
  );
  return rows.map(({ key_id, retired_at_ms, identity }) => ({
    keyId: key_id,
    signs: retired_at_ms === null,
    hasSeed: identity !== null,
  }));
}

const logIn = (server: TokenServer) => server.logIn("ada", password);

describeStores("qsp issuer rotate", (makePlace: MakePlace) => {
  it("makes a key that signs from then on, on all servers that run, while tokens of the old key live on", async () => {
    const place = await makePlace();
    const servers = [await startTokenServer(place), await startTokenServer(place)];
    await addAda(place);
    const old = await Promise.all(servers.map(logIn));
    const [oldId = ""] = old.map(keyIdOf);
    expect(old.map(keyIdOf)).toEqual([oldId, oldId]);
    const newId = await rotate(place);
    for (const server of servers) {
      const token = await logIn(server);
      expect(keyIdOf(token)).toBe(newId);
      for (const other of servers) {
        expect(await other.useToken(token)).toBe("ada");
        for (const each of old) expect(await other.useToken(each)).toBe("ada");
      }
      expect(await server.listKeyIds()).toEqual([newId, oldId]);
    }
  });

  it("erases the seed of the key before from the store, and keeps one that signs", async () => {
    const place = await makePlace();
    const server = await startTokenServer(place);
    const [first] = await server.listKeyIds();
    expect(await keysOf(place)).toEqual([{ keyId: first, signs: true, hasSeed: true }]);
    const second = await rotate(place);
    const third = await rotate(place);
    expect(await keysOf(place)).toEqual([
      { keyId: third, signs: true, hasSeed: true },
      { keyId: second, signs: false, hasSeed: false },
      { keyId: first, signs: false, hasSeed: false },
    ]);
    expect(await server.listKeyIds()).toEqual([third, second, first]);
  });

  it("with revoke ends all tokens of the keys before within 2 s, on every server", async () => {
    const place = await makePlace();
    const servers = [await startTokenServer(place), await startTokenServer(place)];
    await addAda(place);
    const [one, two] = servers as [TokenServer, TokenServer];
    const tokens = [await logIn(one)];
    await rotate(place);
    tokens.push(await logIn(two));
    // All have seen both keys; what follows ends tokens of a key that is retired, and of one that is not.
    for (const server of servers)
      for (const token of tokens) expect(await server.useToken(token)).toBe("ada");
    const newId = await rotate(place, "revoke");
    const revokedMs = performance.now();
    for (const server of servers)
      for (const token of tokens)
        await vi.waitFor(async () => expect(await refusal(server.useToken(token))).toEqual(unknownKey), {
          timeout: revokedWithinMs,
          interval: 50,
        });
    expect(performance.now() - revokedMs).toBeLessThan(revokedWithinMs);
    for (const server of servers) {
      expect(await server.listKeyIds()).toEqual([newId]);
      expect(await server.useToken(await logIn(server))).toBe("ada");
    }
  });

  it("loses no log-in and no token while many log in on two servers", async () => {
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

  it("keeps one key that signs of two that are made at once", async () => {
    const place = await makePlace();
    await (await startTokenServer(place)).stop();
    const newIds = await Promise.all([rotate(place), rotate(place)]);
    const [signing, ...retired] = await keysOf(place);
    expect(newIds).toContain(signing?.keyId);
    expect(signing).toMatchObject({ signs: true, hasSeed: true });
    expect(retired).toHaveLength(2);
    expect(retired.filter(({ signs, hasSeed }) => signs || hasSeed)).toEqual([]);
  });

  it("lists the key that signs first, also where the clock that made it was behind", async () => {
    const { parts, provider, store } = await openParts(await makePlace());
    const issuer = await openIssuer(parts);
    onTestFinished(issuer.close);
    const [first] = (await issuer.publicJwks()).map(({ kid }) => kid);
    // Two machines on one PostgreSQL, or one whose clock was set.
    const behind = { provider, store, now: () => new Date(Date.now() - 5000) };
    const second = await rotateIssuerKey(behind, { revoke: false });
    expect((await issuer.publicJwks()).map(({ kid }) => kid)).toEqual([second, first]);
  });

  it("loses no token that is issued between two rotations", async () => {
    const { parts, store } = await openParts(await makePlace());
    let afterList = async (): Promise<void> => {};
    const interrupted: IssuerStore = {
      ...store,
      // What another program does between two reads of this one.
      openSeed: async (keyId) => {
        const act = afterList;
        afterList = async () => {};
        await act();
        return store.openSeed(keyId);
      },
    };
    const issuer = await openIssuer({ ...parts, store: interrupted });
    onTestFinished(issuer.close);
    await rotateIssuerKey(parts, { revoke: false });
    let newId = "";
    afterList = async () => {
      newId = await rotateIssuerKey(parts, { revoke: false });
    };
    const { token } = await issuer.issue("ada");
    expect(newId).not.toBe("");
    expect(keyIdOf(token)).toBe(newId);
  });
});

describe("qsp issuer rotate", { timeout }, () => {
  it.each([
    { what: "a word that it does not know", words: ["now"] },
    { what: "a word too many", words: ["revoke", "revoke"] },
  ])("refuses $what, with code 2 and a sentence, and makes no key", async ({ words }) => {
    const directory = makeTemporaryDirectory();
    const result = await runCommand({ settings: ["--data-dir", directory] }, ["issuer", "rotate", ...words]);
    expect(result).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) });
  });

  it("refuses where there is no store, and makes none", async () => {
    const directory = join(makeTemporaryDirectory(), "mistyped");
    const result = await runCommand({ settings: ["--data-dir", directory] }, ["issuer", "rotate"]);
    expect(result).toEqual({ code: 2, stdout: "", stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) });
  });

  it("works in a store that no server has used yet, which then signs with that key", async () => {
    const directory = makeTemporaryDirectory();
    const place = { settings: ["--data-dir", directory] };
    await runCommand(place, ["user", "add", "ada"], password);
    const keyId = await rotate(place);
    const server = await startTokenServer({ directory, ...place });
    expect(await server.listKeyIds()).toEqual([keyId]);
    expect(keyIdOf(await logIn(server))).toBe(keyId);
  });
});

const strace = isMissing("strace") ? "strace, which is not installed" : "strace";
describe.skipIf(isMissing("strace"))(`qsp issuer rotate, killed by ${strace},`, { timeout: 180_000 }, () => {
  it("before and after its commit leaves one key that signs, with its seed", async () => {
    const place = makeSqlitePlace();
    const { parts } = await openParts(place);
    (await openIssuer(parts)).close();
    const outcomes = new Set<string>();
    let before = await keysOf(place);
    // Each run is killed as it asks the disk to keep what it has written, one time later than the run before.
    for (let isKilled = true, sync = 1; isKilled; sync += 1) {
      isKilled = await rotateUntilSync(place, sync);
      const keys = await keysOf(place);
      expect(keys.filter(({ signs }) => signs)).toHaveLength(1);
      expect(keys.filter(({ signs, hasSeed }) => signs !== hasSeed)).toEqual([]);
      outcomes.add(`${isKilled ? "killed" : "ended"} with ${keys.length - before.length} more`);
      before = keys;
      const issuer = await openIssuer(parts);
      expect(await issuer.isWorking()).toBe(true);
      issuer.close();
    }
    expect(outcomes).toEqual(new Set(["killed with 0 more", "killed with 1 more", "ended with 1 more"]));
  });
});

/** A place for one test, in SQLite. */
function makeSqlitePlace(): Pick<Place, "settings" | "query" | "open"> {
  const directory = makeTemporaryDirectory();
  return {
    settings: ["--data-dir", directory],
    async query(sql) {
      const database = new DatabaseSync(join(directory, "qsp.db"), { timeout: 5000 });
      try {
        return database.prepare(sql).all() as Row[];
      } finally {
        database.close();
      }
    },
    async open() {
      const provider = await createCryptoProvider("openssl");
      const parts = { location: sqliteIn(directory), masterKey: masterKeyIn(directory), provider };
      const store = await openStore(parts);
      onTestFinished(async () => {
        await store.close();
        await provider.close();
      });
      return store;
    },
  };
}

/** Opens what issues tokens, as one more program on the store. */
async function openParts(place: Pick<Place, "open">) {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const store = createIssuerStore(await place.open());
  return { provider, store, parts: { provider, store, now: () => new Date() } };
}

/** Rotates until the program asks for the n-th sync of a file, at which it is killed. @returns whether it came so far */
async function rotateUntilSync(place: Pick<Place, "settings">, n: number): Promise<boolean> {
  const inject = `inject=fsync,fdatasync:signal=SIGKILL:when=${n}`;
  const flags = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", inject];
  const args = [...flags, process.execPath, main, "issuer", "rotate", ...place.settings];
  const child = spawn("strace", args, { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [code, signal] = await once(child, "close");
  // strace ends as the program did.
  const killed = signal === "SIGKILL" || code === 137;
  expect([code, signal]).toEqual(killed ? [signal === null ? 137 : null, signal] : [0, null]);
  return killed;
}

/** Logs in again and again on each server, and uses each token on the other, until told to stop. */
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
    /** Waits until so many more have logged in. */
    reaches: (more: number) => {
      const wanted = tokens.length + more;
      return vi.waitUntil(() => tokens.length >= wanted || failures.length > 0, { timeout: 30_000 });
    },
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
      return { tokens, failures };
    },
  };
}
