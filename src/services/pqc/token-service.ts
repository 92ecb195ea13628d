/** pqc.TokenService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { TokenService } from "#gen/pqc/token_service_pb.ts";
import type { LogIn } from "../../identity/log-in.ts";
import { readOrigin, requireCaller } from "../../protocol/call-values.ts";
import { listAlgorithms } from "./algorithms.ts";
import { type CheckTokenDeps, checkToken } from "./check-token.ts";

/** The dependencies of the service. */
export interface TokenServiceDeps extends CheckTokenDeps {
  readonly logIn: LogIn;
}

/** Implements the service. */
export function tokenService(deps: TokenServiceDeps): ServiceImpl<typeof TokenService> {
  const { provider, issuer, logIn } = deps;
  return {
    hello: () => ({ message: "Hello from the Quantum-Safe Playground" }),
    getHealth: async () => {
      const isWorking = await issuer.isWorking();
      return {
        serviceStatus: isWorking ? "UP" : "DOWN",
        cryptoProvider: provider.version,
        cryptoProviderActive: isWorking,
      };
    },
    issueToken: async ({ username, password }, context) => {
      const { signal } = context;
      const input = { username, password, ...readOrigin(context), signal };
      const { token, expiresAt } = await logIn(input);
      return { token, expiresAt: timestampFromDate(expiresAt) };
    },
    verifyToken: async (req) => {
      const { expiresAt, ...checked } = await checkToken(deps, req);
      return { ...checked, expiresAt: expiresAt && timestampFromDate(expiresAt) };
    },
    getJwks: async () => ({ keys: [...(await issuer.publicJwks())] }),
    getSecureData: (_req, context) => {
      const { subject, issuedAt, expiresAt } = requireCaller(context);
      return {
        message: `Hello ${subject}, your token was signed with ML-DSA-65 and verified`,
        subject,
        issuedAt: timestampFromDate(issuedAt),
        expiresAt: timestampFromDate(expiresAt),
      };
    },
    getCryptoInfo: () => ({ algorithms: listAlgorithms("ALL") }),
  };
}
