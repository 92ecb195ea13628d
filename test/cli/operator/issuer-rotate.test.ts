import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { RecordDamagedError } from "../../../src/database/store-error.ts";
import { openIssuer, rotateIssuerKey } from "../../../src/identity/issuer.ts";
import type { IssuerStore } from "../../../src/identity/issuer-store.ts";
import { makeStoreDirectory } from "../../support/empty-store.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { password } from "../../support/passwords.ts";
import { refusal } from "../../support/refusal.ts";
import { keyIdOf, runCommand, startTokenServer, type TokenServer } from "./command-line.ts";
import { addAda, keysOf, logIn, openParts, rotate, rotateByProgram } from "./issuer-place.ts";

const timeout = 180_000;
const unknownKey = { code: "Unauthenticated", reason: "TOKEN_KEY_UNKNOWN" };

/** A server polls the keys once per second. */
const lookMs = 1000;

describe("qsp issuer rotate", { timeout }, () => {
  it("creates a new signing key for all running servers; tokens of the old key remain valid", async () => {
    const place = await makeSqlitePlace();
    const servers = [await startTokenServer(place), await startTokenServer(place)];
    await addAda(place);
    const old = await Promise.all(servers.map(logIn));
    const [oldId = ""] = old.map(keyIdOf);
    expect(await keysOf(place)).toEqual([{ keyId: oldId, signs: true, hasSeed: true }]);
    const newId = await rotate(place);
    for (const server of servers) {
      const token = await logIn(server);
      expect(keyIdOf(token)).toBe(newId);
      for (const other of servers)
        for (const each of [token, ...old]) expect(await other.useToken(each)).toBe("ada");
      expect(await server.listKeyIds()).toEqual([newId, oldId]);
    }
    // The store has only the new key's seed.
    expect(await keysOf(place)).toEqual([
      { keyId: newId, signs: true, hasSeed: true },
      { keyId: oldId, signs: false, hasSeed: false },
    ]);
  });

  it("with revoke, ends all tokens signed with earlier keys within 2 s, on every server", async () => {
    const place = await makeSqlitePlace();
    const servers = [await startTokenServer(place), await startTokenServer(place)];
    await addAda(place);
    const [one, two] = servers as [TokenServer, TokenServer];
    const tokens = [await logIn(one)];
    await rotate(place);
    tokens.push(await logIn(two));
    // This ends tokens of a retired key and of one that is not retired.
    const newId = await rotate(place, "revoke");
    // Two polls, however long they take on this machine.
    for (let looks = 0; looks < 2; looks += 1) {
      await setTimeout(lookMs);
      expect(await keysOf(place)).toHaveLength(3);
    }
    for (const server of servers)
      for (const token of tokens) expect(await refusal(server.useToken(token))).toEqual(unknownKey);
    for (const server of servers) {
      expect(await server.listKeyIds()).toEqual([newId]);
      expect(await server.useToken(await logIn(server))).toBe("ada");
    }
  });

  it("keeps one signing key when two rotations run at the same time", async () => {
    const place = await makeSqlitePlace();
    await (await startTokenServer(place)).stop();
    const newIds = await Promise.all([rotateByProgram(place), rotateByProgram(place)]);
    const [signing, ...retired] = await keysOf(place);
    expect(newIds).toContain(signing?.keyId);
    expect(signing).toMatchObject({ signs: true, hasSeed: true });
    expect(retired).toHaveLength(2);
    expect(retired.filter(({ signs, hasSeed }) => signs || hasSeed)).toEqual([]);
  });

  it("lists the signing key first, even if the clock that created it was behind", async () => {
    const { parts, provider, store } = await openParts(await makeSqlitePlace());
    const issuer = await openIssuer(parts);
    onTestFinished(issuer.close);
    const [first] = (await issuer.publicJwks()).map(({ kid }) => kid);
    // Two machines on one PostgreSQL, or one whose clock was set back.
    const behind = { provider, store, now: () => new Date(Date.now() - 5000) };
    const second = await rotateIssuerKey(behind, { revoke: false });
    expect((await issuer.publicJwks()).map(({ kid }) => kid)).toEqual([second, first]);
  });

  it("with revoke, ends tokens on a server whose clock is a minute behind", async () => {
    const { parts, provider, store } = await openParts(await makeSqlitePlace());
    const issuer = await openIssuer(parts);
    onTestFinished(issuer.close);
    const { token } = await issuer.issue("ada");
    expect((await issuer.check(token)).ok).toBe(true);
    const ahead = { provider, store, now: () => new Date(Date.now() + 60_000) };
    await rotateIssuerKey(ahead, { revoke: true });
    await issuer.publicJwks(); // Reads the store, as the poll does.
    expect((await issuer.check(token)).ok).toBe(false);
  });

  it("loses no token that is issued between two rotations", async () => {
    const { parts, store } = await openParts(await makeSqlitePlace());
    let afterList = async (): Promise<void> => {};
    const interrupted: IssuerStore = {
      ...store,
      // What another program does between two reads by this one.
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

  it("works in a store that no server has used yet, which then signs with that key", async () => {
    const place = { settings: ["--data-dir", await makeStoreDirectory()] };
    await runCommand(place, ["user", "add", "ada"], password);
    const keyId = await rotate(place);
    const server = await startTokenServer(place);
    expect(await server.listKeyIds()).toEqual([keyId]);
    expect(keyIdOf(await logIn(server))).toBe(keyId);
  });

  it.each(["delete from sealed_secrets", "update sealed_secrets set ciphertext = zeroblob(60)"])(
    "makes a key whose damaged seed issues no token, and is named: %s",
    async (change) => {
      const place = await makeSqlitePlace();
      const { parts } = await openParts(place);
      const issuer = await openIssuer(parts);
      onTestFinished(issuer.close);
      // The issuer has its first key's seed in memory.
      const keyId = await rotateIssuerKey(parts, { revoke: false });
      await place.query(`${change} where identity like '%${keyId}%'`);
      const damage = { constructor: RecordDamagedError, record: `issuer key ${keyId}` };
      await expect(issuer.issue("ada")).rejects.toMatchObject(damage);
    },
  );
});
