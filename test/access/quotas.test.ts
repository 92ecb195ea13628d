/** How much one user may store and have in progress, with limits small enough to use up, and who may read what. */

import { ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { present } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { failureOf, outcomeOf, refusal } from "../support/refusal.ts";
import { drain, streamOf } from "../support/streams.ts";
import {
  type AccessServer,
  type Clients,
  describeAccess,
  makePeople,
  startAccessServer,
  timeout,
} from "./access-server.ts";
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

describeAccess(
  "a user's quotas",
  (shared) => {
    for (const [name, prepare] of Object.entries(adding)) {
      it(`reject one more than the limit, without affecting other users: ${name}`, async () => {
        const [ada, bob] = await makePeople(await shared());
        const add = await prepare(ada);
        for (let i = 0; i < 3; i += 1) await add();
        expect(await refusal(add())).toEqual(exceeded);
        await (await prepare(bob))();
      });
    }

    it("count the signers of a wallet, not just the wallet", async () => {
      const { defi } = await (await shared()).makePerson();
      expect(await refusal(defi.createMultisig({ signerCount: 4, threshold: 1 }))).toEqual(exceeded);
      await defi.createMultisig({ signerCount: 3, threshold: 1 });
    });

    it("free room when a tunnel is disconnected, as the refusal says", async () => {
      const { vpn } = await (await shared()).makePerson();
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
      const person = await (await shared()).makePerson();
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
      const person = await (await shared()).makePerson();
      const { keyId } = present((await person.kms.createKey({})).result);
      for (let i = 0; i < 2; i += 1) await person.kms.createKey({});
      expect(await refusal(person.kms.rotateKey({ keyId }))).toEqual(exceeded);
      const { auditLog } = await (await (await shared()).makePerson("auditor")).kms.getAuditLog({ keyId });
      expect(auditLog.at(-1)).toMatchObject({ operation: "ROTATE", outcome: "REFUSED" });
      expect(auditLog.at(-1)?.details).toContain("QUOTA_EXCEEDED");
    });

    it("limit open challenges per device and per client network, until they are answered", async () => {
      const person = await (await shared()).makePerson();
      const [device, other] = [await registerDevice(person), await registerDevice(person)];
      const answers = [await answerChallenge(person, device), await answerChallenge(person, device)];
      expect(await refusal(person.iot.issueChallenge({ deviceId: device.deviceId }))).toEqual(exceeded);
      await person.iot.issueChallenge({ deviceId: other.deviceId });
      expect(await refusal(person.iot.issueChallenge({ deviceId: other.deviceId }))).toEqual(exceeded);
      expect(await person.iot.authenticate(present(answers[0]))).toMatchObject({ authenticated: true });
      await person.iot.issueChallenge({ deviceId: device.deviceId });
    });
  },
  args,
);

describeAccess("an open server's quota", () => {
  it("is ten times as high, for all its callers together", async () => {
    const open = ["--auth", "open", "--max-tunnels-per-user", "1"];
    const server = await startAccessServer({ atEnd: onTestFinished, args: open });
    const { vpn } = server.connect();
    for (let i = 0; i < 10; i += 1) await vpn.registerPeer({});
    expect(await refusal(vpn.registerPeer({}))).toEqual(exceeded);
  });
});

const limited = { code: "ResourceExhausted", reason: "CONCURRENCY_LIMITED" };

const start = (...args: string[]): Promise<AccessServer> =>
  startAccessServer({ atEnd: onTestFinished, args });

/** Opens a block watch and waits for its first block. */
async function watchBlocks({ chain }: Person) {
  const leave = new AbortController();
  onTestFinished(() => leave.abort());
  const blocks = chain.watchBlocks({}, { signal: leave.signal })[Symbol.asyncIterator]();
  await blocks.next();
  return { blocks, leave };
}

type Person = Awaited<ReturnType<AccessServer["makePerson"]>>;

describe("one user's streams", { timeout }, () => {
  it("are rejected beyond --max-streams-per-user without affecting other users", async () => {
    const server = await start("--max-streams-per-user", "2");
    const [ada, bob] = await makePeople(server);
    await ada.chain.registerNode({});
    const first = await watchBlocks(ada);
    await watchBlocks(ada);
    expect(await refusal(watchBlocks(ada))).toEqual(limited);
    await watchBlocks(bob);
    first.leave.abort();
    await expect.poll(() => watchBlocks(ada).then(() => "open")).toBe("open");
  });

  it("end once the user is removed, however many they are", async () => {
    const server = await start();
    const [ada, bob] = await makePeople(server);
    const streams = [await watchBlocks(ada), await watchBlocks(ada)];
    const other = await watchBlocks(bob);
    const ends = Promise.all(streams.map(({ blocks }) => outcomeOf(blocks.next())));
    await server.office.users.remove(ada.name);
    expect(await ends).toEqual(["TOKEN_REVOKED", "TOKEN_REVOKED"]);
    other.leave.abort();
    await expect(other.blocks.next()).rejects.toThrow(ConnectError);
  });
});

describe("TokenService.VerifyToken", { timeout }, () => {
  it("reports a removed user's token as invalid", async () => {
    const server = await start();
    const ada = await server.makePerson();
    expect(await ada.tokens.verifyToken({ token: ada.token })).toMatchObject({
      valid: true,
      subject: ada.name,
    });
    await server.office.users.remove(ada.name);
    const { valid, reason, use, roles } = await server.connect().tokens.verifyToken({ token: ada.token });
    expect([valid, reason]).toEqual([false, "the token's user was removed or has a new password"]);
    expect([use, roles]).toEqual([undefined, []]);
  });

  it("returns the role of its subject", async () => {
    const server = await start();
    for (const role of ["user", "auditor", "admin"] as const) {
      const { token } = await server.makePerson(role);
      expect((await server.connect().tokens.verifyToken({ token })).roles).toEqual([role]);
    }
  });

  it("distinguishes a device's token from a user's", async () => {
    const server = await start();
    const { iot } = await server.makePerson();
    const { deviceId } = await iot.registerDevice({ simulated: true });
    const { challenge } = await iot.issueChallenge({ deviceId });
    const { signature } = await iot.simulatedSign({ deviceId, data: challenge });
    const { token } = await iot.authenticate({ deviceId, challenge, signature });
    const answer = { valid: true, subject: deviceId, use: "iot", roles: ["device"] };
    expect(await server.connect().tokens.verifyToken({ token: token ?? "" })).toMatchObject(answer);
  });
});

describe("/metrics", { timeout }, () => {
  const read = async ({ url }: AccessServer, token?: string) =>
    (await fetch(`${url}/metrics`, token ? { headers: { authorization: `Bearer ${token}` } } : {})).status;

  it("is for auditors and administrators with --auth token", async () => {
    const server = await start();
    const statuses: number[] = [await read(server), await read(server, "forged")];
    for (const role of ["user", "auditor", "admin"] as const)
      statuses.push(await read(server, (await server.makePerson(role)).token));
    expect(statuses).toEqual([401, 401, 403, 200, 200]);
  });

  it("is for anyone with --metrics open or --auth open, and for nobody with --metrics off", async () => {
    expect(await read(await start("--metrics", "open"))).toBe(200);
    expect(await read(await start("--auth", "open"))).toBe(200);
    expect(await read(await start("--auth", "open", "--metrics", "token"))).toBe(401);
    const closed = await start("--metrics", "off");
    expect(await read(closed, (await closed.makePerson("admin")).token)).toBe(404);
  });
});

describe("reflection", { timeout }, () => {
  it("accepts messages of a few KiB and 1,000 of them in a stream, and echoes no more", async () => {
    const { url } = await start();
    const sessionManager = new Http2SessionManager(url);
    onTestFinished(() => sessionManager.abort());
    const reflection = createClient(ServerReflection, createGrpcTransport({ baseUrl: url, sessionManager }));
    const ask = async (host: string) => {
      const question = { host, messageRequest: { case: "listServices" as const, value: "*" } };
      for await (const answer of reflection.serverReflectionInfo(streamOf(question)))
        return answer.validHost.length;
      return undefined;
    };
    const askOften = async () => {
      const question = { messageRequest: { case: "fileContainingSymbol" as const, value: "kms.KmsService" } };
      await drain(reflection.serverReflectionInfo(streamOf(...Array(1001).fill(question))));
    };
    expect(await refusal(askOften())).toEqual({ code: "ResourceExhausted", reason: "RATE_LIMITED" });
    expect(await ask("h".repeat(10_000))).toBe(10_000);
    const tooLarge = { code: "ResourceExhausted", reason: "BODY_TOO_LARGE" };
    expect(await refusal(ask("h".repeat(20_000)))).toEqual(tooLarge);
  });
});
