import { createPublicKey } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type GetGatewayInfoResponse, VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { sqliteIn } from "../../src/database/database.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { openGateway } from "../../src/services/vpn/gateway.ts";
import { vpnService } from "../../src/services/vpn/service.ts";
import { createVpnStore } from "../../src/services/vpn/store.ts";
import { findSecrets, type Haystack } from "../faults/secrets.ts";
import { base64, bytesOf, flipBit } from "../support/bytes.ts";
import { openStore, tableNames } from "../support/open-store.ts";
import { refusal } from "../support/refusal.ts";
import { damaged, fieldInvalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { present } from "./answers.ts";
import { describeApp, describeReplicas, type TestApp, type VpnClient } from "./devices-and-tunnels.ts";
import { makeSigner, rawOf, sha256, verifiesOutside } from "./node-crypto.ts";
import {
  confirmAsPeer,
  connectGiven,
  connectMade,
  connectPeer,
  directionKeysAsPeer,
  encapsulateTo,
  makePeer,
  openAsPeer,
  registerPeer,
  sealAsPeer,
} from "./vpn-peer.ts";

const notFound = { code: "NotFound", reason: "TUNNEL_NOT_FOUND" };
const sessionMissing = { code: "FailedPrecondition", reason: "SESSION_MISSING" };

async function listAll(vpn: VpnClient) {
  return (await vpn.listTunnels({})).tunnels;
}

/** What every server returns alike; the signature differs per server. */
const keysOf = ({ kemPublicKeySignature: _, ...keys }: GetGatewayInfoResponse) => keys;

describeApp("vpn.VpnService.GetGatewayInfo", ({ vpn, start }) => {
  it("returns both public keys, raw and as PEM, one of which signs the other", async () => {
    const { kemPublicKey, kemPublicKeySignature, ...info } = await vpn.getGatewayInfo({});
    const [kem, identity] = [info.kemPublicKeyPem, info.identityPublicKeyPem].map((pem) =>
      rawOf(createPublicKey(pem)),
    );
    expect([kem, identity]).toEqual(
      [kemPublicKey, info.identityPublicKey].map((key) => Uint8Array.from(key)),
    );
    const context = Buffer.from("quantum-safe-playground vpn kem key");
    const isSigned = (message: Uint8Array) =>
      verifiesOutside(info.identityPublicKeyPem, message, kemPublicKeySignature, context);
    expect([isSigned(kemPublicKey), isSigned(flipBit(kemPublicKey))]).toEqual([true, false]);
  });

  it("returns the same keys after a restart, and different keys in another store", async () => {
    const first = await start();
    const before = await first.vpn.getGatewayInfo({});
    await first.close();
    const again = await start(first.database);
    expect(keysOf(await again.vpn.getGatewayInfo({}))).toEqual(keysOf(before));
    const other = await (await start()).vpn.getGatewayInfo({});
    expect(other.kemPublicKey).not.toEqual(before.kemPublicKey);
    expect(other.identityPublicKey).not.toEqual(before.identityPublicKey);
  });

  it.each([
    ["the identity", "vpn/gateway/identity-key", /identity of the gateway/],
    ["the encapsulation key", "vpn/gateway/kem-key", /key exchange key of the gateway/],
    ["both, and a peer is registered", "vpn/gateway/%", /identity of the gateway/],
  ])("does not replace a missing key: the server does not start without %s", async (_what, lost, said) => {
    const first = await start();
    await first.vpn.registerPeer({});
    await first.tamper((db) => db.deleteFrom("sealed_secrets").where("identity", "like", lost).execute());
    await first.close();
    await expect(start(first.database)).rejects.toThrow(said);
  });
});

describeApp("vpn.VpnService.RegisterPeer", ({ vpn, start }) => {
  it.each(["publicKey", "publicKeyPem"] as const)(
    "accepts a peer's own %s, and returns no private key",
    async (field) => {
      const peer = makePeer();
      const answer = await vpn.registerPeer({ peerName: "laptop", [field]: peer[field] });
      expect(answer.publicKeyPem).toBe(peer.publicKeyPem);
      expect(Uint8Array.from(answer.publicKey)).toEqual(peer.publicKey);
      expect([answer.privateKey, answer.privateKeySeed]).toEqual([undefined, undefined]);
    },
  );

  it("generates a pair whose decapsulation key matches its public key", async () => {
    const { publicKey, privateKey, privateKeySeed } = await vpn.registerPeer({});
    expect(ml_kem1024.keygen(Uint8Array.from(present(privateKeySeed)))).toEqual({
      publicKey: Uint8Array.from(publicKey),
      secretKey: Uint8Array.from(present(privateKey)),
    });
  });

  it("assigns addresses from 10.8.0.2 on, and the lowest released address first", async () => {
    const { vpn } = await start();
    const { publicKey } = makePeer();
    const peers = [];
    for (let i = 0; i < 4; i++) peers.push(await vpn.registerPeer({ publicKey }));
    const addresses = peers.map(({ assignedIp }) => assignedIp);
    expect(addresses).toEqual(["10.8.0.2", "10.8.0.3", "10.8.0.4", "10.8.0.5"]);
    for (const i of [2, 0]) await vpn.disconnect({ tunnelId: present(peers[i]).tunnelId });
    const later = [];
    for (let i = 0; i < 3; i++) later.push((await vpn.registerPeer({ publicKey })).assignedIp);
    expect(later).toEqual(["10.8.0.2", "10.8.0.4", "10.8.0.6"]);
  });

  it("assigns the last usable address last, and then fails until one is released", async () => {
    const { vpn, tamper } = await start();
    const { publicKey } = makePeer();
    await tamper((db) =>
      sql`
        insert into vpn_tunnels (position, tunnel_id, peer_name, address_number, public_key, is_server_held, owner,
          created_at_ms, record_tag)
        with recursive numbers(n) as (select 2 union all select n + 1 from numbers where n < 65533)
        select n, 'tunnel-' || n, '', n, ${Buffer.alloc(1)}, 0, '', 0, '' from numbers`.execute(db),
    );
    const last = await vpn.registerPeer({ publicKey });
    expect(last.assignedIp).toBe("10.8.255.254");
    expect(await refusal(vpn.registerPeer({ publicKey }))).toEqual({
      code: "ResourceExhausted",
      reason: "ADDRESS_POOL_EMPTY",
    });
    await vpn.disconnect({ tunnelId: "tunnel-256" });
    expect((await vpn.registerPeer({ publicKey })).assignedIp).toBe("10.8.1.0");
  });

  const peer = makePeer();
  // FIPS 203, section 7.2: each 12 bits of an encapsulation key are below 3329.
  const overModulus = Uint8Array.from(peer.publicKey).fill(0xff, 0, 3);
  const { publicKeyPem } = makeSigner("ml-dsa-44");
  it.each([
    ["a key one byte short", { publicKey: peer.publicKey.subarray(1) }, wrongKey("publicKey")],
    ["a key with numbers above the modulus", { publicKey: overModulus }, wrongKey("publicKey")],
    ["a PEM key of a different algorithm", { publicKeyPem }, wrongKey("publicKeyPem")],
    ["a key both raw and as PEM", { publicKey: peer.publicKey, publicKeyPem }, fieldInvalid],
  ])("rejects %s", async (_what, request, expected) => {
    expect(await refusal(vpn.registerPeer(request))).toMatchObject(expected);
  });
});

describeApp("vpn.VpnService.Handshake", ({ vpn }) => {
  /** Asserts what must hold for any handshake, by the proto's specification. */
  function expectGenuine(
    { transcript, ciphertext, signature, ...answer }: Awaited<ReturnType<VpnClient["handshake"]>>,
    tunnelId: string,
    peerPublicKey: Uint8Array,
    sessionKey: Uint8Array,
  ): void {
    expect(transcript).toBe(`${tunnelId}:${base64(ciphertext)}:${sha256(peerPublicKey)}`);
    expect(signature).toHaveLength(3309);
    expect(verifiesOutside(answer.gatewayIdentityPublicKeyPem, bytesOf(transcript), signature)).toBe(true);
    expect(Uint8Array.from(answer.keyConfirmation)).toEqual(confirmAsPeer(sessionKey, transcript));
  }

  it("encapsulates to a peer that keeps its own key", async () => {
    const { tunnelId, publicKey, decapsulate } = await registerPeer(vpn);
    const answer = await vpn.handshake({ tunnelId });
    expect(answer.sharedSecretMatch).toBeUndefined();
    expectGenuine(answer, tunnelId, publicKey, decapsulate(answer.ciphertext));
    const info = await vpn.getGatewayInfo({});
    expect(answer.gatewayIdentityPublicKey).toEqual(info.identityPublicKey);
  });

  it("encapsulates to a peer whose pair it generated, and confirms that both sides agree", async () => {
    const { tunnelId, publicKey, sessionKey, answer } = await connectMade(vpn);
    expect(answer.sharedSecretMatch).toBe(true);
    expectGenuine(answer, tunnelId, publicKey, sessionKey);
  });

  it("accepts the ciphertext of a peer that encapsulated to the gateway", async () => {
    const { tunnelId, publicKey } = await registerPeer(vpn);
    const { sessionKey, ciphertext } = await encapsulateTo(vpn);
    const answer = await vpn.handshake({ tunnelId, ciphertext });
    expect(Uint8Array.from(answer.ciphertext)).toEqual(ciphertext);
    expect(answer.sharedSecretMatch).toBeUndefined();
    expectGenuine(answer, tunnelId, publicKey, sessionKey);
  });

  it("confirms a different key for a ciphertext modified in transit", async () => {
    const { tunnelId } = await registerPeer(vpn);
    const { sessionKey, ciphertext } = await encapsulateTo(vpn);
    const answer = await vpn.handshake({ tunnelId, ciphertext: flipBit(ciphertext) });
    const expected = confirmAsPeer(sessionKey, answer.transcript);
    expect(Uint8Array.from(answer.keyConfirmation)).not.toEqual(expected);
  });

  it("rejects a ciphertext of the wrong length", async () => {
    const { tunnelId } = await registerPeer(vpn);
    const call = vpn.handshake({ tunnelId, ciphertext: new Uint8Array(1567) });
    expect(await refusal(call)).toEqual(wrongLength("ciphertext"));
    expect(await refusal(vpn.sendPacket({ tunnelId, size: 1 }))).toEqual(sessionMissing);
  });
});

describe("vpn.VpnService.Handshake while the gateway still computes", () => {
  /** Starts the service on SQLite, with a gateway whose encapsulation or signing waits for the test. */
  async function startSlow(slowMember: "encapsulate" | "sign") {
    const dataDir = makeTemporaryDirectory();
    const provider = await createCryptoProvider("openssl");
    const store = await openStore({ location: sqliteIn(dataDir), masterKey: masterKeyIn(dataDir), provider });
    const gateway = await openGateway(store, provider, createVpnStore(store));
    onTestFinished(async () => {
      await gateway.close();
      await store.close();
      await provider.close();
    });
    const [hasBegun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slowProvider = new Proxy(provider, {
      get(target, name) {
        const member = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        if (name !== slowMember) return member.bind(target);
        return async (...order: unknown[]) => {
          hasBegun.resolve();
          await goOn.promise;
          return member.apply(target, order);
        };
      },
    });
    const tunnels = createVpnStore(store);
    const parts = { provider: slowProvider, store, gateway, tunnels, now: () => new Date() };
    const transport = createRouterTransport(({ service }) => service(VpnService, vpnService(parts)));
    return { vpn: createClient(VpnService, transport), hasBegun: hasBegun.promise, goOn: goOn.resolve };
  }

  it.each(["its own", "a generated"])(
    "leaves no session for a disconnected tunnel with %s key",
    async (kind) => {
      const { vpn, hasBegun, goOn } = await startSlow("sign");
      const request = kind === "its own" ? { publicKey: makePeer().publicKey } : {};
      const { tunnelId } = await vpn.registerPeer(request);
      const handshake = vpn.handshake({ tunnelId }).catch(() => {});
      await hasBegun;
      const disconnect = vpn.disconnect({ tunnelId });
      // This test does not require either to wait for the other.
      await Promise.race([disconnect, setTimeout(500)]);
      goOn();
      await Promise.all([handshake, disconnect]);
      expect(await refusal(vpn.sendPacket({ tunnelId, size: 1 }))).toEqual(notFound);
      expect(await vpn.getHealth({})).toMatchObject({ activePeerCount: 0, sessionCount: 0 });
    },
  );

  it("reports a disconnected tunnel with a generated key as missing, not as damaged", async () => {
    const { vpn, hasBegun, goOn } = await startSlow("encapsulate");
    const { tunnelId } = await vpn.registerPeer({});
    const handshake = refusal(vpn.handshake({ tunnelId }));
    await hasBegun;
    await vpn.disconnect({ tunnelId });
    goOn();
    expect(await handshake).toEqual(notFound);
  });
});

describeApp("vpn.VpnService.VerifyHandshake", ({ vpn }) => {
  it("is true for what the gateway signed, with its key raw, as PEM, or omitted", async () => {
    const { signature, transcript, ...keys } = (await connectMade(vpn)).answer;
    const { gatewayIdentityPublicKey, gatewayIdentityPublicKeyPem } = keys;
    for (const key of [{}, { gatewayIdentityPublicKey }, { gatewayIdentityPublicKeyPem }])
      expect(await vpn.verifyHandshake({ signature, transcript, ...key })).toMatchObject({ valid: true });
  });

  it("is false for a different transcript, signature or key", async () => {
    const { signature, transcript } = (await connectMade(vpn)).answer;
    const { publicKey: gatewayIdentityPublicKey } = makeSigner("ml-dsa-65");
    for (const request of [
      { signature, transcript: `${transcript}0` },
      { signature: flipBit(signature), transcript },
      { signature, transcript, gatewayIdentityPublicKey },
    ])
      expect(await vpn.verifyHandshake(request)).toMatchObject({ valid: false });
  });

  const shortKey = { gatewayIdentityPublicKey: new Uint8Array(1951) };
  it.each([
    ["a signature", { signature: new Uint8Array(3308) }, wrongLength("signature")],
    ["a key", { signature: new Uint8Array(3309), ...shortKey }, wrongKey("gatewayIdentityPublicKey")],
  ])("rejects %s of the wrong length", async (_what, request, expected) => {
    expect(await refusal(vpn.verifyHandshake({ transcript: "text", ...request }))).toEqual(expected);
  });
});

describeApp("vpn.VpnService.Disconnect", ({ tamper, vpn }) => {
  it("ends a tunnel: every later call returns NOT_FOUND", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    expect(await vpn.disconnect({ tunnelId })).toMatchObject({ tunnelId, tunnelStatus: "REMOVED" });
    const packet = sealAsPeer(sessionKey, bytesOf("late"));
    const calls = [
      vpn.handshake({ tunnelId }),
      vpn.sendPacket({ tunnelId, size: 1 }),
      vpn.receivePacket({ tunnelId, packet }),
      vpn.rekey({ tunnelId }),
      vpn.disconnect({ tunnelId }),
    ];
    expect(await Promise.all(calls.map(refusal))).toEqual(calls.map(() => notFound));
    expect((await listAll(vpn)).map((tunnel) => tunnel.tunnelId)).not.toContain(tunnelId);
  });

  it("erases the sealed key of a peer whose pair the gateway generated", async () => {
    const { tunnelId } = await vpn.registerPeer({});
    const countSecrets = () =>
      tamper(async (db) => {
        const rows = await db.selectFrom("sealed_secrets").select("identity").execute();
        return rows.filter(({ identity }) => identity.includes(tunnelId)).length;
      });
    expect(await countSecrets()).toBe(1);
    await vpn.disconnect({ tunnelId });
    expect(await countSecrets()).toBe(0);
  });
});

describeApp("vpn.VpnService.ListTunnels and GetHealth", ({ start }) => {
  it("show which tunnels have a session, and count its packets", async () => {
    const { vpn } = await start();
    const { tunnelId } = await connectPeer(vpn, "laptop");
    await vpn.rekey({ tunnelId });
    await vpn.sendPacket({ tunnelId, size: 100 });
    await vpn.registerPeer({});
    expect(await listAll(vpn)).toMatchObject([
      { peerName: "laptop", sessionStatus: "ESTABLISHED", packetCount: 1, byteCount: 100, rekeyCount: 1 },
      { peerName: "", sessionStatus: "REGISTERED", packetCount: 0, byteCount: 0, rekeyCount: 0 },
    ]);
    expect(await vpn.getHealth({})).toMatchObject({ activePeerCount: 2, sessionCount: 1 });
    await vpn.disconnect({ tunnelId });
    expect(await vpn.getHealth({})).toMatchObject({ activePeerCount: 1, sessionCount: 0 });
  });

  it("keep tunnels but no sessions after a restart, until the next handshake", async () => {
    const first = await start();
    const { tunnelId, sessionKey, decapsulate } = await connectPeer(first.vpn);
    await first.vpn.sendPacket({ tunnelId, size: 100 });
    const [before] = await listAll(first.vpn);
    await first.close();
    const { vpn } = await start(first.database);
    const { assignedIp } = present(before);
    const registered = { tunnelId, assignedIp, sessionStatus: "REGISTERED", packetCount: 0 };
    expect(await listAll(vpn)).toMatchObject([registered]);
    expect(await refusal(vpn.sendPacket({ tunnelId, size: 1 }))).toEqual(sessionMissing);
    const packet = sealAsPeer(sessionKey, bytesOf("old"));
    expect(await refusal(vpn.receivePacket({ tunnelId, packet }))).toEqual(sessionMissing);
    expect(await refusal(vpn.rekey({ tunnelId }))).toEqual(sessionMissing);
    const { ciphertext } = await vpn.handshake({ tunnelId });
    const sent = await vpn.sendPacket({ tunnelId, data: bytesOf("again") });
    expect(openAsPeer(decapsulate(ciphertext), sent.packet)).toEqual(bytesOf("again"));
  });
});

describeApp("a tunnel whose record was tampered with", ({ tamper, vpn }) => {
  it("is rejected if the peer's public key was changed, while other tunnels work", async () => {
    const [hurt, sound] = [await vpn.registerPeer({}), await vpn.registerPeer({})];
    const { publicKey } = makePeer();
    await tamper((db) =>
      db
        .updateTable("vpn_tunnels")
        .set({ public_key: publicKey, is_server_held: 0 })
        .where("tunnel_id", "=", hurt.tunnelId)
        .execute(),
    );
    expect(await refusal(vpn.handshake({ tunnelId: hurt.tunnelId }))).toEqual(damaged);
    expect(await vpn.handshake({ tunnelId: sound.tunnelId })).toMatchObject({ sharedSecretMatch: true });
  });
});

describeApp("the store of vpn.VpnService", ({ start }) => {
  /** Reads everything that the database contains, and all files in the data directory. */
  async function readEverything({ tamper, config }: TestApp): Promise<Haystack[]> {
    const cells = await tamper(async (db) => {
      const found: unknown[] = [];
      for (const table of tableNames) {
        const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(db);
        found.push(...rows.flatMap((row) => Object.values(row)));
      }
      return found.map((cell) => Buffer.from(cell instanceof Uint8Array ? cell : String(cell)));
    });
    const files = globSync("**/*", { cwd: config.dataDir, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
    return [{ name: "store", bytes: Buffer.concat([...files, ...cells]) }];
  }

  it("contains no session key: not after a handshake, a rekey, packets, or the end", async () => {
    const app = await start();
    const { vpn } = app;
    const peer = await connectPeer(vpn);
    const { tunnelId } = peer;
    const rekeyed = peer.decapsulate((await vpn.rekey({ tunnelId })).ciphertext);
    const made = await connectMade(vpn);
    await vpn.sendPacket({ tunnelId, size: 100 });
    const held = [await readEverything(app)];
    await app.close();
    held.push(await readEverything(app));
    // The rest of a decapsulation key is public (FIPS 203, section 6.1).
    const keys = [peer.sessionKey, rekeyed, made.sessionKey, made.secretKey.subarray(0, 1536)];
    const secrets = keys.map((bytes) => ({ name: "key", bytes }));
    for (const everything of held) {
      expect(findSecrets(everything, [{ name: "peer", bytes: peer.publicKey }])).toHaveLength(1);
      expect(findSecrets(everything, secrets)).toEqual([]);
    }
  });
});

describeReplicas("vpn.VpnService on two servers", (startTwo) => {
  async function startBoth() {
    const [one, two] = await startTwo();
    return { one: one.vpn, two: two.vpn };
  }

  it("is one gateway: it has the same keys, and assigns 32 addresses to 32 peers that register concurrently", async () => {
    const { one, two } = await startBoth();
    expect(keysOf(await two.getGatewayInfo({}))).toEqual(keysOf(await one.getGatewayInfo({})));
    const { publicKey } = makePeer();
    const calls = Array.from({ length: 32 }, (_, i) => (i % 2 ? one : two).registerPeer({ publicKey }));
    const addresses = (await Promise.all(calls)).map(({ assignedIp }) => assignedIp);
    expect(new Set(addresses).size).toBe(32);
  });

  it("keeps sessions separate: a handshake with one server is none with the other", async () => {
    const { one, two } = await startBoth();
    const { tunnelId } = await connectPeer(one);
    expect(await refusal(two.sendPacket({ tunnelId, size: 1 }))).toEqual(sessionMissing);
    expect(await listAll(two)).toMatchObject([{ tunnelId, sessionStatus: "REGISTERED" }]);
    expect(await listAll(one)).toMatchObject([{ tunnelId, sessionStatus: "ESTABLISHED" }]);
  });

  it("drops a tunnel that was disconnected on the other server, even one with a session", async () => {
    const { one, two } = await startBoth();
    const { tunnelId } = await connectPeer(one);
    await two.disconnect({ tunnelId });
    const health = { activePeerCount: 0, sessionCount: 0 };
    await vi.waitFor(async () => expect(await one.getHealth({})).toMatchObject(health), { timeout: 100_000 });
    expect(await refusal(one.sendPacket({ tunnelId, size: 1 }))).toEqual(notFound);
  });
});

const data = bytesOf("the quick brown fox");
const handshakeReplayed = { code: "AlreadyExists", reason: "HANDSHAKE_REPLAYED" };
const packetReplayed = { code: "AlreadyExists", reason: "PACKET_REPLAYED" };

describeApp("a recorded handshake", ({ tamper, vpn, start }) => {
  it("cannot be replayed: a received packet stays received", async () => {
    const { tunnelId, sessionKey, ciphertext } = await connectGiven(vpn);
    const packet = sealAsPeer(sessionKey, data);
    await vpn.receivePacket({ tunnelId, packet });
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    expect(await refusal(vpn.rekey({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    expect(await refusal(vpn.receivePacket({ tunnelId, packet }))).toEqual(packetReplayed);
    // The session is unaffected.
    expect((await vpn.receivePacket({ tunnelId, packet: sealAsPeer(sessionKey, data) })).data).toEqual(data);
  });

  it("cannot be replayed after other handshakes and rekeys", async () => {
    const { tunnelId, ciphertext } = await connectGiven(vpn);
    await vpn.rekey({ tunnelId });
    const second = (await encapsulateTo(vpn)).ciphertext;
    await vpn.rekey({ tunnelId, ciphertext: second });
    await vpn.handshake({ tunnelId });
    for (const recorded of [ciphertext, second])
      for (const call of [vpn.handshake, vpn.rekey])
        expect(await refusal(call({ tunnelId, ciphertext: recorded }))).toEqual(handshakeReplayed);
  });

  it("cannot be replayed after a restart", async () => {
    const first = await start();
    const { tunnelId, sessionKey, ciphertext } = await connectGiven(first.vpn);
    await first.vpn.receivePacket({ tunnelId, packet: sealAsPeer(sessionKey, data) });
    await first.close();
    const { vpn } = await start(first.database);
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    await vpn.handshake({ tunnelId, ciphertext: (await encapsulateTo(vpn)).ciphertext });
  });

  it("opens no session in another tunnel, where recorded packets could be read", async () => {
    const first = await connectGiven(vpn);
    const { ciphertext } = first;
    const { tunnelId } = await registerPeer(vpn);
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    await vpn.disconnect({ tunnelId: first.tunnelId });
    expect(await refusal(vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    await vpn.handshake({ tunnelId });
    expect(await refusal(vpn.rekey({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
  });

  it("is deleted with its tunnel if its keys are bound to the tunnel", async () => {
    const { tunnelId } = await registerPeer(vpn);
    const { ciphertext } = await encapsulateTo(vpn);
    await vpn.handshake({ tunnelId, ciphertext, keyForm: "PER_DIRECTION" });
    const listKept = () =>
      tamper((db) =>
        db.selectFrom("vpn_used_ciphertexts").select("tunnel_id").where("tunnel_id", "=", tunnelId).execute(),
      );
    expect(await listKept()).toHaveLength(1);
    await vpn.disconnect({ tunnelId });
    expect(await listKept()).toEqual([]);
  });

  it("is one of at most 10,000 per tunnel; after that, only the gateway encapsulates", async () => {
    const { tunnelId } = await connectGiven(vpn);
    await tamper(async (db) => {
      for (let i = 1; i < 10_000; i += 1000) {
        const rows = Array.from({ length: Math.min(1000, 10_000 - i) }, (_, j) => ({
          tunnel_id: tunnelId,
          key_form: "SHARED",
          ciphertext_hash: `${String(i + j).padStart(27, "0")}-${tunnelId}`,
        }));
        await db.insertInto("vpn_used_ciphertexts").values(rows).execute();
      }
    });
    const { ciphertext } = await encapsulateTo(vpn);
    expect(await refusal(vpn.rekey({ tunnelId, ciphertext }))).toEqual({
      code: "ResourceExhausted",
      reason: "HANDSHAKE_LIMIT_REACHED",
    });
    await vpn.rekey({ tunnelId });
  });
});

describeReplicas("two servers that receive the same recorded handshake", (startTwo) => {
  it("open one session between them", async () => {
    const [one, two] = await startTwo();
    const { tunnelId, ciphertext } = await connectGiven(one.vpn);
    expect(await refusal(two.vpn.handshake({ tunnelId, ciphertext }))).toEqual(handshakeReplayed);
    const fresh = await encapsulateTo(one.vpn);
    const order = { tunnelId, ciphertext: fresh.ciphertext };
    const calls = Array.from({ length: 16 }, (_, i) => (i % 2 ? one : two).vpn.handshake(order));
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
});

describeApp("a session with one key per direction", ({ vpn }) => {
  const keyForm = "PER_DIRECTION";

  it("keeps its form in a rekey, and can change it in a new handshake", async () => {
    const peer = await registerPeer(vpn);
    const { tunnelId } = peer;
    await vpn.handshake({ tunnelId, keyForm });
    const rekeyed = await vpn.rekey({ tunnelId });
    expect(rekeyed.keyForm).toBe(keyForm);
    const keys = directionKeysAsPeer(peer.decapsulate(rekeyed.ciphertext), rekeyed.transcript);
    expect(Uint8Array.from(rekeyed.keyConfirmation)).toEqual(keys.confirm(rekeyed.transcript));
    const packet = sealAsPeer(keys.toGateway, data);
    expect((await vpn.receivePacket({ tunnelId, packet })).data).toEqual(data);

    const again = await vpn.handshake({ tunnelId, keyForm: "SHARED" });
    expect(again.keyForm).toBeUndefined();
    const confirmation = confirmAsPeer(peer.decapsulate(again.ciphertext), again.transcript);
    expect(Uint8Array.from(again.keyConfirmation)).toEqual(confirmation);
    expect((await vpn.rekey({ tunnelId })).keyForm).toBeUndefined();
  });
});
