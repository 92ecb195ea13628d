/** oauth.AuthorizationService: unpack, call, pack. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AuthorizationService } from "#gen/oauth/authorization_service_pb.ts";
import { refuse } from "../../errors.ts";
import type { TokenHolder } from "../../identity/authenticate.ts";
import type { StoredClient } from "../../identity/clients.ts";
import type { CheckCredentials } from "../../identity/credentials.ts";
import { requireClient } from "./client-auth.ts";
import { type IntrospectDeps, introspect, revoke } from "./introspect.ts";
import { accessTokenType, issueToken } from "./issue-token.ts";
import { describeServer } from "./metadata.ts";

/** What the service needs. */
export interface AuthorizationServiceDeps extends IntrospectDeps {
  readonly checkClient: CheckCredentials<StoredClient>;
  readonly issuerUrl: string | undefined;
  /** The scopes that the calls of this server need. */
  readonly scopes: readonly string[];
  readonly now: () => Date;
}

/** Implements the service. */
export function authorizationService(
  deps: AuthorizationServiceDeps,
): ServiceImpl<typeof AuthorizationService> {
  const { checkClient, issuer, accounts, scopes } = deps;
  const requireIssuerUrl = (): string => {
    if (deps.issuerUrl !== undefined) return deps.issuerUrl;
    throw refuse("ISSUER_URL_MISSING", "the server issues no access tokens; start it with --issuer-url");
  };
  return {
    getMetadata: () => describeServer(requireIssuerUrl(), scopes),
    async issueToken(request, context) {
      const issuerUrl = requireIssuerUrl();
      const client = await requireClient(checkClient, request, context);
      const granted = await issueToken({ issuer, accounts, issuerUrl }, client, request);
      forbidCaching(context);
      return {
        accessToken: granted.token,
        tokenType: "Bearer",
        expiresIn: (granted.expiresAt.getTime() - granted.issuedAt.getTime()) / 1000,
        scope: granted.scopes.join(" "),
        ...(granted.isExchange && { issuedTokenType: accessTokenType }),
      };
    },
    async introspectToken(request, context) {
      const client = await requireClient(checkClient, request, context);
      const holder = await introspect(deps, client, request.token);
      forbidCaching(context);
      return holder === undefined ? { active: false } : packHolder(holder, deps.issuerUrl);
    },
    async revokeToken(request, context) {
      const client = await requireClient(checkClient, request, context);
      await revoke(deps, client, request.token);
      return {};
    },
  };
}

/** RFC 6749, section 5.1. */
function forbidCaching({ responseHeader }: HandlerContext): void {
  responseHeader.set("cache-control", "no-store");
}

function packHolder({ subject, role, access, expiresAt, issuedAt }: TokenHolder, iss: string | undefined) {
  return {
    active: true,
    sub: subject,
    role,
    tokenType: "Bearer",
    exp: expiresAt.getTime() / 1000,
    iat: issuedAt.getTime() / 1000,
    ...(access && {
      scope: access.scopes.join(" "),
      clientId: access.clientId,
      aud: { values: access.audiences.map((value) => ({ kind: { case: "stringValue" as const, value } })) },
      jti: access.tokenId,
      ...(iss !== undefined && { iss }),
    }),
  };
}
