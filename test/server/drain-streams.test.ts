/** Streams that never end by themselves, on a stopping server whose drain time no test could wait for. */
import { getOption, type MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { Drain, drain } from "#gen/qsp/drain_pb.ts";
import { type TunnelRequestSchema, VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { readConfig } from "../../src/config.ts";
import { present } from "../services/answers.ts";
import { openConnections, serveApp } from "../services/app-under-test.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { createOutgoing } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";

const stopping = { code: "Unavailable", reason: "SHUTTING_DOWN" };

async function start() {
  const flags = ["--port", "0", "--max-drain-ms", String(3_600_000), "--services", "kms,vpn"];
  const app = await serveApp(readConfig([...flags, "--data-dir", makeTemporaryDirectory()], {}));
  const connections = openConnections(app.url);
  onTestFinished(async () => {
    connections.disconnect();
    app.server.destroy();
    await app.close();
  });
  return { ...app, ...connections };
}

describe("a stopping server", { timeout: 120_000 }, () => {
  it("ends a watch of the audit log, also over REST with the reason", async () => {
    const app = await start();
    const kms = createClient(KmsService, app.grpc);
    await kms.createKey({});
    const entries = kms.watchAuditLog({ afterSequence: 0 })[Symbol.asyncIterator]();
    await entries.next();
    const ended = refusal(entries.next());
    const response = await fetch(`${app.url}/api/kms/audit/watch?afterSequence=0`);
    const chunks = present(response.body ?? undefined)[Symbol.asyncIterator]();
    await chunks.next();
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    const last = await chunks.next();
    const text = Buffer.from(last.value ?? new Uint8Array()).toString();
    for (const part of ['"retryDelay":"1s"', '"SHUTTING_DOWN"']) expect(text).toContain(part);
    await closed;
  });

  it("ends a tunnel after replying to the packets that it accepted", async () => {
    const app = await start();
    const vpn = createClient(VpnService, app.grpc);
    const { tunnelId } = await vpn.registerPeer({});
    await vpn.handshake({ tunnelId });
    const packets = createOutgoing<MessageInitShape<typeof TunnelRequestSchema>>();
    const replies = vpn.tunnel(packets)[Symbol.asyncIterator]();
    packets.send({ packet: { case: "send", value: { tunnelId, data: bytesOf("hello") } } });
    expect((await replies.next()).value?.result?.case).toBe("sent");
    const ended = refusal(replies.next());
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    packets.end();
    await closed;
  });
});

it("knows for every stream that does not end by itself how to end it", async () => {
  const services = (await loadPackages()).flatMap(({ files }) => files.flatMap((file) => file.services));
  const streams = services
    .flatMap(({ methods }) => methods)
    .filter(({ methodKind }) => methodKind !== "unary");
  const namesOf = (kind: Drain): string[] =>
    streams.filter((method) => getOption(method, drain) === kind).map(({ name }) => name);
  const ownEnds = ["GetCbom", "SignStream", "UpdateFirmwareStream", "UploadTarget", "GetFile"];
  expect(namesOf(Drain.UNSPECIFIED).sort()).toEqual(ownEnds.sort());
  expect(namesOf(Drain.ANSWER).sort()).toEqual(["StreamTelemetry", "Tunnel"]);
});
