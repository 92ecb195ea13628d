/** Where pre-shared keys must not be. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { pino } from "pino";
import { expect, it, onTestFinished } from "vitest";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { createApp } from "../../../src/app.ts";
import { readConfig } from "../../../src/config.ts";
import { openConnections } from "../../../test/services/app-under-test.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { loadPackages } from "../../../test/support/whole-program.ts";
import { connectAgent, joinPeer, startAgreement } from "./agent.ts";

it("keeps pre-shared keys out of the store, logs, metrics, lists and errors", async () => {
  const dataDir = makeTemporaryDirectory();
  const lines: string[] = [];
  const logger = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const config = readConfig(["--port", "0", "--data-dir", dataDir], {});
  const app = await createApp(config, logger, { packages: await loadPackages() });
  const { port } = await app.server.listen(0, "127.0.0.1");
  const url = `http://127.0.0.1:${port}`;
  const { grpc, disconnect } = openConnections(url);
  onTestFinished(async () => {
    disconnect();
    app.server.destroy();
    await app.close();
  });
  const wireguard = createClient(WireguardService, grpc);
  let applied = true;
  const agent = await connectAgent(grpc, { apply: () => applied });
  const errors: unknown[] = [];
  for (const outcome of [true, false]) {
    applied = outcome;
    const { tunnelId, epoch, peerConfirmation } = await startAgreement(wireguard, await joinPeer(grpc));
    const confirmed = wireguard.confirm({ tunnelId, epoch, confirmation: peerConfirmation });
    await confirmed.catch((error: unknown) => errors.push(error));
  }
  expect([agent.keys.length, errors.length]).toEqual([2, 1]);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect([lines.length > 0, metrics.includes("qsp_calls_total")]).toEqual([true, true]);
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const listed = JSON.stringify(await wireguard.listPeers({}));
  const places = [
    Buffer.from([...lines, metrics, listed, ...errors.map((error) => JSON.stringify(error))].join("\n")),
    ...files.map(({ parentPath, name }) => readFileSync(join(parentPath, name))),
  ];
  for (const { presharedKey, wireguardPublicKey } of agent.keys) {
    // Shows that the search works: the store has this public key.
    expect(places.some((place) => place.includes(Buffer.from(wireguardPublicKey)))).toBe(true);
    const key = Buffer.from(presharedKey);
    const texts = [key.toString("hex"), key.toString("base64").slice(0, 43), key.toString("base64url")];
    for (const form of [key, ...texts]) expect(places.some((place) => place.includes(form))).toBe(false);
  }
});
