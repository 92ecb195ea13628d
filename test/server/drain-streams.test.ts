/** Streams that never end by themselves, on a stopping server whose drain time no test could wait for. */
import { createClient } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/grpc/health/v1/health_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { readConfig } from "../../src/config.ts";
import { present } from "../services/answers.ts";
import { openConnections, serveApp } from "../services/app-under-test.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { createOutgoing } from "../support/streams.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const stopping = { code: "Unavailable", reason: "SHUTTING_DOWN" };
const minuteMs = 60_000;

async function start() {
  const flags = [
    "--port",
    "0",
    "--max-drain-ms",
    String(60 * minuteMs),
    "--services",
    "kms,iot,vpn,blockchain",
  ];
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
  it("ends a watch of the audit log", async () => {
    const app = await start();
    const kms = createClient(KmsService, app.grpc);
    await kms.createKey({});
    const entries = kms.watchAuditLog({ afterSequence: 0 })[Symbol.asyncIterator]();
    await entries.next();
    const ended = refusal(entries.next());
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    await closed;
  });

  it("ends a watch of blocks", async () => {
    const app = await start();
    const blocks = createClient(BlockchainService, app.grpc).watchBlocks({})[Symbol.asyncIterator]();
    await blocks.next();
    const ended = refusal(blocks.next());
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    await closed;
  });

  it("reports over a health watch that it no longer serves, and ends the watch", async () => {
    const app = await start();
    const statuses = createClient(Health, app.grpc).watch({})[Symbol.asyncIterator]();
    expect((await statuses.next()).value).toMatchObject({ status: ServingStatus.SERVING });
    const closed = app.server.close();
    expect((await statuses.next()).value).toMatchObject({ status: ServingStatus.NOT_SERVING });
    expect(await refusal(statuses.next())).toEqual(stopping);
    await closed;
  });
  it("ends a watch over REST with the reason", async () => {
    const app = await start();
    await createClient(KmsService, app.grpc).createKey({});
    const response = await fetch(`${app.url}/api/kms/audit/watch?afterSequence=0`);
    const chunks = present(response.body ?? undefined)[Symbol.asyncIterator]();
    await chunks.next();
    const closed = app.server.close();
    const last = await chunks.next();
    expect(Buffer.from(last.value ?? new Uint8Array()).toString()).toMatch(
      /"retryDelay":"1s".*"SHUTTING_DOWN"|"SHUTTING_DOWN".*"retryDelay":"1s"/,
    );
    await closed;
  });

  it("ends a tunnel after replying to the packets that it accepted", async () => {
    const app = await start();
    const vpn = createClient(VpnService, app.grpc);
    const { tunnelId } = await vpn.registerPeer({});
    await vpn.handshake({ tunnelId });
    const packets =
      createOutgoing<Parameters<typeof vpn.tunnel>[0] extends AsyncIterable<infer T> ? T : never>();
    const replies = vpn.tunnel(packets)[Symbol.asyncIterator]();
    packets.send({ packet: { case: "send", value: { tunnelId, data: bytesOf("hello") } } });
    expect((await replies.next()).value?.result?.case).toBe("sent");
    const ended = refusal(replies.next());
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    packets.end();
    await closed;
  });

  it("ends a stream of readings after answering those that it accepted", async () => {
    const app = await start();
    const iot = createClient(IotService, app.grpc);
    const { deviceId } = await iot.registerDevice({ simulated: true });
    const telemetry = bytesOf("23 °C");
    const { signature } = await iot.simulatedSign({ deviceId, data: telemetry });
    const readings = createOutgoing<{
      reading: { deviceId: string; telemetry: Uint8Array; signature: Uint8Array };
    }>();
    const verdicts = iot.streamTelemetry(readings)[Symbol.asyncIterator]();
    readings.send({ reading: { deviceId, telemetry, signature } });
    expect((await verdicts.next()).value).toMatchObject({ verified: true });
    const ended = refusal(verdicts.next());
    const closed = app.server.close();
    expect(await ended).toEqual(stopping);
    readings.end();
    await closed;
  });
});
