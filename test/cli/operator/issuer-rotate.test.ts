import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
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

describe("qsp issuer rotate", () => {
  it("creates a new signing key for all running servers; tokens of the old key remain valid", async () => {
    const place = await makeSqlitePlace();
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

  it("erases the previous key's seed from the store, and keeps one signing key", async () => {
    const place = await makeSqlitePlace();
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

  it("with revoke, ends all tokens signed with earlier keys within 2 s, on every server", async () => {
    const place = await makeSqlitePlace();
    const servers = [await startTokenServer(place), await startTokenServer(place)];
    await addAda(place);
    const [one, two] = servers as [TokenServer, TokenServer];
    const tokens = [await logIn(one)];
    await rotate(place);
    tokens.push(await logIn(two));
    // All servers have seen both keys; the next step ends tokens of a retired key and of one that is not retired.
    for (const server of servers)
      for (const token of tokens) expect(await server.useToken(token)).toBe("ada");
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
});

describe("qsp issuer rotate", { timeout }, () => {
  it("works in a store that no server has used yet, which then signs with that key", async () => {
    const place = { settings: ["--data-dir", await makeStoreDirectory()] };
    await runCommand(place, ["user", "add", "ada"], password);
    const keyId = await rotate(place);
    const server = await startTokenServer(place);
    expect(await server.listKeyIds()).toEqual([keyId]);
    expect(keyIdOf(await logIn(server))).toBe(keyId);
  });
});
