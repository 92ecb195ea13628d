/** This extension's calls for the test of what refused calls add to the store. */
import { createClient } from "@connectrpc/connect";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import type { AccessServer, Person } from "../../../test/access/access-server.ts";
import { bytesOf } from "../../../test/support/bytes.ts";
import { refusal } from "../../../test/support/refusal.ts";

const data = bytesOf("hello");

const nameOf = (n: number): string =>
  `projects/p/locations/global/keyRings/ring/cryptoKeys/key-${n}/cryptoKeyVersions/1`;

const connect = ({ transport }: Person) => createClient(KeyManagementService, transport);

/** Refused calls that add no entry. */
export const silent = {
  "AsymmetricSign over Google's interface": (_server: AccessServer, user: Person, n: number) =>
    refusal(connect(user).asymmetricSign({ name: nameOf(n), data })),
  "Decapsulate over Google's interface": (_server: AccessServer, user: Person, n: number) =>
    refusal(connect(user).decapsulate({ name: nameOf(n), ciphertext: data })),
};
