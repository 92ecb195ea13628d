/** The whole app with clients of tunnels and of this extension. */
import { createClient } from "@connectrpc/connect";
import { onTestFinished, vi } from "vitest";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { type Place, startUnderTest, type TestDatabase } from "../../../test/services/app-under-test.ts";

export type WireguardServer = Awaited<ReturnType<typeof startIn>>;

export async function startIn(place: Place, given?: TestDatabase) {
  const database = given ?? (await place.database());
  const server = await startUnderTest(readConfig(["--port", "0", ...database], {}), place.atEnd);
  return {
    ...server,
    transport: server.grpc,
    vpn: createClient(VpnService, server.grpc),
    wireguard: createClient(WireguardService, server.grpc),
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
