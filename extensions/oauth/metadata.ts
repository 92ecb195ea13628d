/** Authorization server metadata (RFC 8414, section 2). */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GetMetadataResponseSchema } from "#gen/oauth/authorization_service_pb.ts";
import { tokenAlgorithms } from "../../src/crypto/jwt.ts";
import { grantTypes } from "./issue-token.ts";

const authMethods = ["client_secret_basic", "client_secret_post"];

/** @param issuer the server's URL, without a trailing slash */
export function describeServer(
  issuer: string,
  scopes: readonly string[],
): MessageInitShape<typeof GetMetadataResponseSchema> {
  return {
    issuer,
    tokenEndpoint: `${issuer}/oauth/token`,
    introspectionEndpoint: `${issuer}/oauth/introspect`,
    revocationEndpoint: `${issuer}/oauth/revoke`,
    jwksUri: `${issuer}/oauth/jwks`,
    scopesSupported: [...scopes],
    // Required (section 2) and not empty (section 3.2), even without an authorization endpoint. OpenID
    // Connect clients expect this value.
    responseTypesSupported: ["id_token"],
    grantTypesSupported: Object.values(grantTypes),
    tokenEndpointAuthMethodsSupported: authMethods,
    introspectionEndpointAuthMethodsSupported: authMethods,
    revocationEndpointAuthMethodsSupported: authMethods,
    subjectTypesSupported: ["public"],
    idTokenSigningAlgValuesSupported: [...tokenAlgorithms],
    serviceDocumentation: `${issuer}/reference`,
  };
}
