import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { RecordDamagedError } from "../../../src/database/store-error.ts";
import { openIssuer, rotateIssuerKey } from "../../../src/identity/issuer.ts";
import type { IssuerStore } from "../../../src/identity/issuer-store.ts";
import { makeStoreDirectory } from "../../support/empty-store.ts";
import { makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { password } from "../../support/passwords.ts";
import { refusal } from "../../support/refusal.ts";
import { keyIdOf, runCommand, runProgram, startTokenServer } from "./command-line.ts";
import { keysOf, openParts } from "./issuer-place.ts";

const timeout = 180_000;
const unknownKey = { code: "Unauthenticated", reason: "TOKEN_KEY_UNKNOWN" };

/** A server polls the keys once per second. */
const lookMs = 1000;

/**
 * Rotates the key with the CLI.
 *
 * @param run runs it as a separate program if several shall run at once
 * @returns the ID of the new key, as printed
 */
async function rotate(place: Pick<Place, "settings">, words: string[] = [], run = runCommand) {
  const { code, stdout, stderr } = await run(place, ["issuer", "rotate", ...words]);
  expect([code, stderr]).toEqual([0, ""]);
  const [, keyId = ""] = /^Key (\S+) now signs tokens\. /.exec(stdout) ?? [];
  expect(keyId).not.toBe("");
  return keyId;
}

describe("qsp issuer rotate", { timeout }, () => {
  it("creates a new signing key for all running servers; tokens of the old key remain valid", async () => {
    const place = await makeSqlitePlace();
    const servers = [await startTokenServer(place), await startTokenServer(place)];
    await servers[0]?.addUser("ada");
    const old = await Promise.all(servers.map(({ logIn }) => logIn("ada")));
    const [oldId = ""] = old.map(keyIdOf);
    expect(await keysOf(place)).toEqual([{ keyId: oldId, signs: true, hasSeed: true }]);
    const newId = await rotate(place);
    for (const server of servers) {
      const token = await server.logIn("ada");
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
    const [one, two] = [await startTokenServer(place), await startTokenServer(place)];
    const servers = [one, two];
    await one.addUser("ada");
    const tokens = [await one.logIn("ada")];
    await rotate(place);
    tokens.push(await two.logIn("ada"));
    // This ends tokens of a retired key and of one that is not retired.
    const newId = await rotate(place, ["revoke"]);
    // Two polls, however long they take on this machine.
    for (let looks = 0; looks < 2; looks += 1) {
      await setTimeout(lookMs);
      expect(await keysOf(place)).toHaveLength(3);
    }
    for (const server of servers)
      for (const token of tokens) expect(await refusal(server.useToken(token))).toEqual(unknownKey);
    for (const server of servers) {
      expect(await server.listKeyIds()).toEqual([newId]);
      expect(await server.useToken(await server.logIn("ada"))).toBe("ada");
    }
  });

  it("keeps one signing key when two rotations run at the same time", async () => {
    const place = await makeSqlitePlace();
    await (await startTokenServer(place)).stop();
    const newIds = await Promise.all([rotate(place, [], runProgram), rotate(place, [], runProgram)]);
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
    expect(keyIdOf(await server.logIn("ada"))).toBe(keyId);
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
