/**
 * How much one user may have in progress, who may read the metrics, and when a removed user's streams end.
 */
import { ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { outcomeOf, refusal } from "../support/refusal.ts";
import { drain, streamOf } from "../support/streams.ts";
import { type AccessServer, makePeople, startAccessServer, timeout } from "./access-server.ts";

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
