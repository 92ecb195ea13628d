/** Devices that were removed, or whose owner's account was, with `--auth token`. */
import { expect, it, onTestFinished } from "vitest";
import { present } from "../services/answers.ts";
import { type OwnDevice, readingOf, registerOwn, respond } from "../services/own-device.ts";
import { describeClient } from "../support/clients.ts";
import { outcomeOf, refusal } from "../support/refusal.ts";
import { createOutgoing } from "../support/streams.ts";
import {
  type AccessServer,
  type Clients,
  describeAccess,
  issueToClient,
  makeDatabase,
  startAccessServer,
  timeout,
} from "./access-server.ts";

const unknown = { code: "NotFound", reason: "DEVICE_NOT_FOUND" };
const revoked = { code: "Unauthenticated", reason: "TOKEN_REVOKED" };
const report = { targetPath: "sensor/image", firmwareHash: "0".repeat(64) };

/** Registers a device and authenticates it. */
async function makeDevice(server: AccessServer, { iot }: Pick<Clients, "iot">) {
  const device = await registerOwn(iot);
  const { token } = await iot.authenticate(await respond(iot, device));
  return { device, token: present(token), asDevice: server.connect(`Bearer ${token}`) };
}

/** Opens a stream, in which the device sends one reading; returns how the stream ends. */
async function openStream({ iot }: Clients, device: OwnDevice) {
  const outgoing = createOutgoing<{ reading: ReturnType<typeof readingOf> }>();
  onTestFinished(() => outgoing.end());
  const answers = iot.streamTelemetry(outgoing)[Symbol.asyncIterator]();
  outgoing.send({ reading: readingOf(device, 1) });
  expect((await answers.next()).value).toMatchObject({ verified: true });
  return { end: outcomeOf(answers.next()) };
}

/** Expects that neither the device nor its token is known. */
async function expectUnknown(server: AccessServer, { device, token, asDevice }: Made, challenge: Uint8Array) {
  const { iot, tokens } = server.connect();
  const { deviceId } = device;
  expect(await refusal(iot.issueChallenge({ deviceId }))).toEqual(unknown);
  const signed = { deviceId, challenge, signature: device.sign(challenge) };
  expect(await refusal(iot.authenticate(signed))).toEqual(unknown);
  expect(await refusal(asDevice.iot.sendTelemetry(readingOf(device, 2)))).toEqual(revoked);
  expect(await refusal(asDevice.iot.reportFirmware(report))).toEqual(revoked);
  const reason = "the token's device or its owner was removed";
  expect(await tokens.verifyToken({ token })).toMatchObject({ valid: false, reason });
}

type Made = Awaited<ReturnType<typeof makeDevice>>;

describeAccess("a device", (shared) => {
  it("is unknown from its removal, like its token, and its streams end", async () => {
    const server = await shared();
    const owner = await server.makePerson();
    const [made, other] = [await makeDevice(server, owner), await makeDevice(server, owner)];
    const { challenge } = await owner.iot.issueChallenge({ deviceId: made.device.deviceId });
    const { end } = await openStream(made.asDevice, made.device);
    await owner.iot.removeDevice({ deviceId: made.device.deviceId });
    expect(await end).toBe("TOKEN_REVOKED");
    await expectUnknown(server, made, challenge);
    expect(await outcomeOf(other.asDevice.iot.reportFirmware(report))).toBe("answer");
  });

  it("is unknown from the removal of its owner's account, like its token, and its streams end", async () => {
    const server = await shared();
    const owner = await server.makePerson();
    const made = await makeDevice(server, owner);
    const { challenge } = await owner.iot.issueChallenge({ deviceId: made.device.deviceId });
    const { end } = await openStream(made.asDevice, made.device);
    await server.office.users.remove(owner.name);
    expect(await end).toBe("TOKEN_REVOKED");
    await expectUnknown(server, made, challenge);
    // A later user with the same name has a different ID.
    await server.makePerson("user", owner.name);
    await expectUnknown(server, made, challenge);
  });

  it("may belong to an OAuth 2 client, until the client is removed", async () => {
    const server = await shared();
    const { clients } = server.office;
    await clients.add(describeClient("fleet"), new Date());
    const owner = server.connect(`Bearer ${await issueToClient(server.office, "fleet", ["iot.write"])}`);
    const made = await makeDevice(server, owner);
    const { challenge } = await owner.iot.issueChallenge({ deviceId: made.device.deviceId });
    await made.asDevice.iot.reportFirmware(report);
    await clients.remove("fleet");
    await expectUnknown(server, made, challenge);
  });
});

it("a device from before the server had users still authenticates", { timeout }, async () => {
  const database = await makeDatabase(onTestFinished);
  const open = await startAccessServer({ atEnd: onTestFinished, database, args: ["--auth", "open"] });
  const device = await registerOwn(open.connect().iot);
  await open.close();
  const server = await startAccessServer({ atEnd: onTestFinished, database });
  const { iot } = server.connect();
  const { token } = await iot.authenticate(await respond(iot, device));
  await server.connect(`Bearer ${present(token)}`).iot.reportFirmware(report);
});
