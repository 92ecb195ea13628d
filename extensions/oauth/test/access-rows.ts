/** This extension's rows of the access table test. */
import { AuthorizationService } from "#gen/oauth/authorization_service_pb.ts";
import { type Row, row } from "../../../test/access/rpc-rows.ts";

const { method } = AuthorizationService;
const ofClient = { authenticatesClient: true };

export const rows: readonly Row[] = [
  row(method.getMetadata, () => ({})),
  row(method.getJwks, () => ({})),
  row(method.issueToken, ({ client }) => ({ ...client, grantType: "client_credentials" }), ofClient),
  row(method.introspectToken, ({ client, owner: { token } }) => ({ ...client, token }), ofClient),
  row(method.revokeToken, ({ client }) => ({ ...client, token: "ended" }), ofClient),
];
