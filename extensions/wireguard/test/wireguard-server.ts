/** The whole app with clients of tunnels and of this extension. */
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { onTestFinished, vi } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { storeSettings } from "../../../src/settings/store-settings.ts";
import {
  openConnections,
  type Place,
  putUnderTest,
  type ServerUnderTest,
  serveApp,
  type TestDatabase,
} from "../../../test/services/app-under-test.ts";
import type { WireguardClient } from "./agent.ts";

export interface WireguardServer extends ServerUnderTest {
  readonly transport: Transport;
  readonly vpn: Client<typeof VpnService>;
  readonly wireguard: WireguardClient;
  readonly database: TestDatabase;
}

export async function startIn(place: Place, given?: TestDatabase): Promise<WireguardServer> {
  const database = given ?? (await place.database());
  const config = readConfig(["--port", "0", ...database], {});
  const app = await serveApp(config);
  const { grpc, disconnect } = openConnections(app.url);
  const stop = async (): Promise<void> => {
    disconnect();
    app.server.destroy();
    await app.close();
  };
  return {
    ...putUnderTest({ url: app.url, location: storeSettings(config).location, stop }, place.atEnd),
    transport: grpc,
    vpn: createClient(VpnService, grpc),
    wireguard: createClient(WireguardService, grpc),
    database,
  };
}

/**
 * Advances the clock by which the server limits agreements.
 *
 * @returns a function that skips a second
 */
export function controlAgreementClock(): () => void {
  const read = performance.now.bind(performance);
  let skippedMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => read() + skippedMs);
  onTestFinished(() => clock.mockRestore());
  return () => {
    skippedMs += 1000;
  };
}
