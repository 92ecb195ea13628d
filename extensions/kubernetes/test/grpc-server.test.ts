/** The plugin's gRPC server, without a key service. */
import { expect, it, onTestFinished } from "vitest";
import { refusal } from "../../../test/support/refusal.ts";
import { startGrpcServer } from "../grpc-server.ts";
import { connectTo, makeSocketPath } from "./start-plugin.ts";

const hourMs = 3_600_000;

it("stops without waiting for a message that was too large to read", async () => {
  const path = makeSocketPath();
  const server = await startGrpcServer({
    service: { status: () => ({}), encrypt: () => ({}), decrypt: () => ({}) },
    interceptors: [],
    place: { path, groupId: undefined },
    maxCallMs: hourMs,
    maxDrainMs: hourMs,
  });
  const { client, close } = connectTo(path);
  onTestFinished(close);
  const tooLarge = client.encrypt({ plaintext: new Uint8Array(70_000) });
  expect(await refusal(tooLarge)).toMatchObject({ code: "ResourceExhausted" });
  await server.close();
});
