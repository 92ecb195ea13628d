/** The rows of this extension in the test of who may call. */
import { Authorization } from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import { type Row, row } from "../../../test/access/rpc-rows.ts";

export const rows: readonly Row[] = [
  // The decision is an answer: it denies.
  row(Authorization.method.check, () => ({ attributes: { request: { http: {} } } })),
];
