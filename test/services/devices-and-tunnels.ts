/** iot.IotService and vpn.VpnService in the whole app, on either database, with clients and streams. */
import { type Client, createClient } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { type Device, IotService } from "#gen/iot/iot_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import type { AtEnd } from "../support/at-end.ts";
import { present, readPages } from "./answers.ts";
import {
  describeOnSqlite,
  describeTwoOnOne,
  openConnections,
  type Place,
  putUnderTest,
  type ServerUnderTest,
  type Shared,
  type Start,
  type StartTwo,
  serveApp,
  type TestDatabase,
} from "./app-under-test.ts";

/** Clients of the device service and of the gateway. */
export type IotClient = Client<typeof IotService>;
export type VpnClient = Client<typeof VpnService>;

/** Clients, over gRPC. */
export interface Clients {
  readonly iot: IotClient;
  readonly vpn: VpnClient;
  /** Closes the connection. */
  disconnect(): void;
}

/** A running app. */
export interface TestApp extends Clients, ServerUnderTest {
  readonly config: Config;
}

/** Describes tests that use the whole app. */
type DescribeApp = (
  name: string,
  define: (start: Start<Config, TestApp>, shared: Shared<TestApp>) => void,
) => void;

/** Describes tests on SQLite: see `describeOnSqlite`. */
export const describeApp: DescribeApp = (name, define) => describeOnSqlite(name, startIn, define);

/** Describes tests of replicas: see `describeTwoOnOne`. */
export function describeReplicas(name: string, define: (startTwo: StartTwo<TestApp>) => void): void {
  describeTwoOnOne(name, startIn, define);
}

async function startIn(place: Place, config?: Config): Promise<TestApp> {
  return startApp(config ?? settingsOn(await place.database()), place.atEnd);
}

function settingsOn(database: TestDatabase): Config {
  return readConfig(["--port", "0", ...database], {});
}

/** Returns the settings of an app in a directory. */
export function settingsIn(dataDir: string, ...args: string[]): Config {
  return settingsOn(["--data-dir", dataDir, ...args]);
}

/** Starts an app; it stops gracefully. */
export async function startApp(config: Config, atEnd: AtEnd = onTestFinished): Promise<TestApp> {
  const { url, close } = await serveApp(config);
  const clients = connectTo(url);
  const stop = async (): Promise<void> => {
    clients.disconnect();
    await close();
  };
  return {
    ...clients,
    ...putUnderTest({ url, location: storeSettings(config).location, stop }, atEnd),
    config,
  };
}

/** Creates clients of the app at a URL. */
export function connectTo(url: string): Clients {
  const { grpc, disconnect } = openConnections(url);
  return { iot: createClient(IotService, grpc), vpn: createClient(VpnService, grpc), disconnect };
}

/** Finds a device as the list shows it. */
export async function findListed(iot: IotClient, deviceId: string): Promise<Device> {
  const { rows } = await readPages(
    (pageToken) => iot.listDevices({ pageToken }),
    ({ devices }) => devices,
  );
  return present(rows.find((device) => device.deviceId === deviceId));
}
