/** Cost of accepting readings, apart from their signatures. */
import { generateKeyPairSync, sign } from "node:crypto";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { type Child, compare, grpc, load, loadStream, post, rawProvider } from "./tools.ts";

export async function measureDevices(app: Child): Promise<void> {
  const { publicKey, privateKey } = generateKeyPairSync("ml-dsa-44");
  const raw = publicKey.export({ format: "raw-public" });
  const { deviceId } = await post(app, "/api/iot/register-device", { publicKey: raw.toString("base64") });
  const telemetry = Buffer.from('{"temperature":21.5}');
  const reading = { deviceId, telemetry, signature: sign(null, telemetry, privateKey) };
  const { streamTelemetry, sendTelemetry } = IotService.method;
  const stream = (): Promise<number> => loadStream(app.url, grpc(streamTelemetry, { reading }));
  await compare("Telemetry over one stream against the provider's verification", "reach 0.7", stream, () =>
    rawProvider("verify ML-DSA-44"),
  );
  await compare(
    "Telemetry over one stream against unary calls",
    "no target",
    stream,
    async () => (await load(app.url, grpc(sendTelemetry, reading))).callsPerSecond,
  );
}
