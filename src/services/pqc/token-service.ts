/** pqc.TokenService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { TokenService } from "#gen/pqc/token_service_pb.ts";
import { requireCaller } from "../../calls/call-values.ts";
import type { ModuleDeps } from "../service-module.ts";
import { listAlgorithms } from "./algorithms.ts";
import { type CheckTokenDeps, checkToken, issueToken } from "./tokens.ts";

export function tokenService(
  deps: CheckTokenDeps & Pick<ModuleDeps, "logIn">,
): ServiceImpl<typeof TokenService> {
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
    issueToken: (req, context) => issueToken(logIn, req, context),
    verifyToken: (req) => checkToken(deps, req),
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
