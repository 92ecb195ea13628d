/** This extension's rows of the access table test. */
import { Authorization } from "#gen/envoy/service/auth/v3/external_auth_pb.ts";
import { type Row, row } from "../../../test/access/rpc-rows.ts";

export const rows: readonly Row[] = [
  // A denial is an answer, not a refusal.
  row(Authorization.method.check, () => ({ attributes: { request: { http: {} } } })),
];
