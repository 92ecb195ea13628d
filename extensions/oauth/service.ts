/** oauth.AuthorizationService: unpack, call, pack. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AuthorizationService } from "#gen/oauth/authorization_service_pb.ts";
import { readOrigin } from "../../src/calls/call-values.ts";
import { excerpt } from "../../src/errors/shorten.ts";
import { refuse } from "../../src/errors.ts";
import type { TokenHolder } from "../../src/identity/authenticate.ts";
import type { ClientAuthDeps } from "./client-auth.ts";
import { openClientCall } from "./client-call.ts";
import { type IntrospectDeps, introspect, revoke } from "./introspect.ts";
import { accessTokenType, type GrantedToken, issueToken } from "./issue-token.ts";
import { describeServer } from "./metadata.ts";
import { reasons } from "./reasons.ts";

/** Maximum characters of audiences in a log entry: a client may request ten of 500 bytes. */
const maxAudienceCharacters = 500;

export interface AuthorizationServiceDeps extends IntrospectDeps, ClientAuthDeps {
  readonly accounts: IntrospectDeps["accounts"];
  readonly issuerUrl: string | undefined;
  /** The scopes that this server's calls require. */
  readonly scopes: readonly string[];
  readonly now: () => Date;
}

export function authorizationService(
  deps: AuthorizationServiceDeps,
): ServiceImpl<typeof AuthorizationService> {
  const { issuer, accounts, scopes } = deps;
  const requireIssuerUrl = (): string => {
    if (deps.issuerUrl !== undefined) return deps.issuerUrl;
    throw refuse(reasons.issuerUrlMissing, "the server issues no access tokens; start it with --issuer-url");
  };
  return {
    getMetadata: () => describeServer(requireIssuerUrl(), scopes),
    getJwks: async () => ({ keys: [...(await issuer.publicJwks())] }),
    async issueToken(request, context) {
      const issuerUrl = requireIssuerUrl();
      const call = await openClientCall(deps, request, context, "ISSUE_TOKEN");
      const granted = await call.recordRefusal(() =>
        issueToken({ issuer, accounts, issuerUrl }, call, request),
      );
      const origin = { name: call.client.name, ...readOrigin(context) };
      await deps.logInRecords.succeeded("ISSUE_TOKEN", origin, describeGranted(granted));
      forbidCaching(context);
      return {
        accessToken: granted.token,
        tokenType: "Bearer",
        expiresIn: (granted.expiresAt.getTime() - granted.issuedAt.getTime()) / 1000,
        ...describeScopes(granted.scopes),
        ...(granted.isExchange && { issuedTokenType: request.requestedTokenType || accessTokenType }),
      };
    },
    async introspectToken(request, context) {
      const call = await openClientCall(deps, request, context, "INTROSPECT_TOKEN");
      const holder = await introspect(deps, call, request.token);
      forbidCaching(context);
      return holder === undefined ? { active: false } : packHolder(holder, deps.issuerUrl);
    },
    async revokeToken(request, context) {
      const call = await openClientCall(deps, request, context, "REVOKE_TOKEN");
      await call.recordRefusal(() => revoke(deps, call, request.token, readOrigin(context)));
      return {};
    },
  };
}

/** Describes a token's purpose for the identity log. */
function describeGranted({ tokenId, subject, scopes, audiences, isExchange }: GrantedToken): string {
  return [
    `token=${tokenId}`,
    ...(isExchange ? [`for=${subject}`] : []),
    `scopes=${scopes.join(" ") || "none"}`,
    `audiences=${excerpt(audiences.join(" "), maxAudienceCharacters)}`,
  ].join(", ");
}

/** RFC 6749, section 3.3: a list of scopes has at least one. */
function describeScopes(scopes: readonly string[]): { scope?: string } {
  return scopes.length === 0 ? {} : { scope: scopes.join(" ") };
}

/** RFC 6749, section 5.1, requires both headers. */
function forbidCaching({ responseHeader }: HandlerContext): void {
  responseHeader.set("cache-control", "no-store");
  responseHeader.set("pragma", "no-cache");
}

/** RFC 8693, section 4.1: who acts for the subject, the latest outermost. Generations are internal. */
function describeActor(clients: readonly string[]): JsonObject {
  const [sub, ...earlier] = clients;
  return sub === undefined ? {} : { act: { sub, ...describeActor(earlier) } };
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
      ...describeScopes(access.scopes),
      clientId: access.clientId,
      aud: { values: access.audiences.map((value) => ({ kind: { case: "stringValue" as const, value } })) },
      jti: access.tokenId,
      ...(iss !== undefined && { iss }),
      ...(access.clientId !== subject &&
        describeActor([access.clientId, ...access.earlierActors.map(({ clientId }) => clientId)])),
    }),
  };
}
