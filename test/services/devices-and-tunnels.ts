/** iot.IotService and vpn.VpnService in the whole app, on either database, with clients and streams. */
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { type Device, IotService } from "#gen/iot/iot_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { present, readPages } from "./answers.ts";
import {
  describeOnSqlite,
  describeTwoOnOne,
  type Given,
  openConnections,
  type StartTwo,
  type TestDatabase,
  useLate,
} from "./app-under-test.ts";
import { type Served, startWith } from "./service-server.ts";

/** Clients of the device service and of the gateway. */
export type IotClient = Client<typeof IotService>;
export type VpnClient = Client<typeof VpnService>;

/** A running app, with clients over gRPC. */
export type TestApp = Served & ReturnType<typeof createClients>;

const createClients = (grpc: Transport) => ({
  iot: createClient(IotService, grpc),
  vpn: createClient(VpnService, grpc),
});

/** Starts the whole app. */
export const startApp = startWith(createClients);

/** Describes tests on SQLite: see `describeOnSqlite`. */
export function describeApp(
  name: string,
  define: (given: Given<TestDatabase, TestApp, ReturnType<typeof createClients>>) => void,
): void {
  describeOnSqlite(name, startApp, (start, shared) => {
    const late = useLate(shared);
    define({ start, shared, ...late, ...createClients(late.grpc) });
  });
}

/** Describes tests of replicas: see `describeTwoOnOne`. */
export function describeReplicas(name: string, define: (startTwo: StartTwo<TestApp>) => void): void {
  describeTwoOnOne(name, startApp, define);
}

/** Creates clients of the app at a URL; `disconnect` closes the connection. */
export function connectTo(url: string) {
  const { grpc, disconnect } = openConnections(url);
  return { ...createClients(grpc), disconnect };
}

/** Finds a device as the list shows it. */
export async function findListed(iot: IotClient, deviceId: string): Promise<Device> {
  const { rows } = await readPages(
    (pageToken) => iot.listDevices({ pageToken }),
    ({ devices }) => devices,
  );
  return present(rows.find((device) => device.deviceId === deviceId));
}
