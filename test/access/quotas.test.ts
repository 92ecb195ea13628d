/** Quotas: how much one user may store, with limits small enough to use up. */
import { expect, it, onTestFinished } from "vitest";
import { present } from "../services/answers.ts";
import { endAfterAll } from "../support/at-end.ts";
import { bytesOf } from "../support/bytes.ts";
import { failureOf, refusal } from "../support/refusal.ts";
import { type AccessServer, type Clients, describeAccess, startAccessServer } from "./access-server.ts";
import { kinds, makeMultisig, makeProposal } from "./owned-records.ts";
import { answerChallenge, registerDevice } from "./rpc-rows.ts";

const data = bytesOf("hello");
const exceeded = { code: "ResourceExhausted", reason: "QUOTA_EXCEEDED" };
const settings = {
  "--max-records-per-user": 3,
  "--max-tunnels-per-user": 3,
  "--max-idempotency-keys-per-user": 3,
  "--max-challenges-per-device": 2,
  "--max-challenges-per-client": 3,
};
const args = Object.entries(settings).flatMap(([flag, limit]) => [flag, String(limit)]);

/** Prepares a call that adds one record to a quota each time; three are allowed. */
type Prepare = (clients: Clients) => Promise<() => Promise<unknown>>;

const { proposals: _, ...plainKinds } = kinds;
const adding: Readonly<Record<string, Prepare>> = {
  ...Object.fromEntries(
    Object.entries(plainKinds).map(([name, { make }]): [string, Prepare] => [
      name,
      async (clients) => () => make(clients),
    ]),
  ),
  "keys, by rotation": async ({ kms }) => {
    let keyId: string | undefined;
    return async () => {
      const key =
        keyId === undefined ? (await kms.createKey({})).result : (await kms.rotateKey({ keyId })).newKey;
      keyId = present(key).keyId;
    };
  },
  proposals: async (clients) => {
    const walletId = await makeMultisig(clients);
    return () => makeProposal(clients, walletId);
  },
  blocks: async ({ chain }) => {
    await chain.registerNode({});
    return () => chain.addBlock({ data });
  },
  transfers: async ({ nft }) => {
    const { tokenId } = await nft.mint({ name: "art" });
    return () => nft.transfer({ tokenId, newOwner: `0x${"ab".repeat(20)}` });
  },
};

describeAccess("a user's quotas", () => {
  const atEnd = endAfterAll();
  let server: Promise<AccessServer> | undefined;
  const start = (): Promise<AccessServer> => {
    server ??= startAccessServer({ atEnd, args });
    return server;
  };

  for (const [name, prepare] of Object.entries(adding)) {
    it(`reject one more than the limit, without affecting other users: ${name}`, async () => {
      const [ada, bob] = [await (await start()).makePerson(), await (await start()).makePerson()];
      const add = await prepare(ada);
      for (let i = 0; i < 3; i += 1) await add();
      expect(await refusal(add())).toEqual(exceeded);
      await (await prepare(bob))();
    });
  }

  it("count the signers of a wallet, not just the wallet", async () => {
    const { defi } = await (await start()).makePerson();
    expect(await refusal(defi.createMultisig({ signerCount: 4, threshold: 1 }))).toEqual(exceeded);
    await defi.createMultisig({ signerCount: 3, threshold: 1 });
  });

  it("free room when a tunnel is disconnected, as the refusal says", async () => {
    const { vpn } = await (await start()).makePerson();
    const [, { tunnelId }] = [
      await vpn.registerPeer({}),
      await vpn.registerPeer({}),
      await vpn.registerPeer({}),
    ];
    const error = await failureOf(vpn.registerPeer({}));
    expect(error.rawMessage).toMatch(/3 tunnels.*disconnect unused tunnels.*--max-tunnels-per-user/);
    await vpn.disconnect({ tunnelId });
    await vpn.registerPeer({});
  });

  it("reject new idempotency keys beyond the limit, and still answer calls with earlier ones", async () => {
    const person = await (await start()).makePerson();
    const withKey = (key: string) => ({ headers: { "idempotency-key": key } });
    const { walletId } = await person.wallet.createWallet({}, withKey("1"));
    const { keyId } = present((await person.kms.createKey({}, withKey("2"))).result);
    await person.nft.mint({ name: "art" }, withKey("3"));
    expect(await refusal(person.dapp.deployContract({ code: "x" }, withKey("4")))).toEqual(exceeded);
    expect(await refusal(person.kms.destroyKey({ keyId }, withKey("5")))).toEqual(exceeded);
    expect((await person.wallet.createWallet({}, withKey("1"))).walletId).toBe(walletId);
    await person.dapp.deployContract({ code: "x" });
  });

  it("record the rejection of a rotation in the audit log", async () => {
    const person = await (await start()).makePerson();
    const { keyId } = present((await person.kms.createKey({})).result);
    for (let i = 0; i < 2; i += 1) await person.kms.createKey({});
    expect(await refusal(person.kms.rotateKey({ keyId }))).toEqual(exceeded);
    const { auditLog } = await (await (await start()).makePerson("auditor")).kms.getAuditLog({ keyId });
    expect(auditLog.at(-1)).toMatchObject({ operation: "ROTATE", outcome: "REFUSED" });
    expect(auditLog.at(-1)?.details).toContain("QUOTA_EXCEEDED");
  });

  it("limit open challenges per device and per client network, until they are answered", async () => {
    const person = await (await start()).makePerson();
    const [device, other] = [await registerDevice(person), await registerDevice(person)];
    const answers = [await answerChallenge(person, device), await answerChallenge(person, device)];
    expect(await refusal(person.iot.issueChallenge({ deviceId: device.deviceId }))).toEqual(exceeded);
    await person.iot.issueChallenge({ deviceId: other.deviceId });
    expect(await refusal(person.iot.issueChallenge({ deviceId: other.deviceId }))).toEqual(exceeded);
    expect(await person.iot.authenticate(present(answers[0]))).toMatchObject({ authenticated: true });
    await person.iot.issueChallenge({ deviceId: device.deviceId });
  });
});

describeAccess("an open server's quota", () => {
  it("is ten times as high, for all its callers together", async () => {
    const open = ["--auth", "open", "--max-tunnels-per-user", "1"];
    const server = await startAccessServer({ atEnd: onTestFinished, args: open });
    const { vpn } = server.connect();
    for (let i = 0; i < 10; i += 1) await vpn.registerPeer({});
    expect(await refusal(vpn.registerPeer({}))).toEqual(exceeded);
  });
});
