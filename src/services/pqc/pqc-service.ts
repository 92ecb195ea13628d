/** pqc.PqcService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import type { Issuer } from "../../identity/issuer.ts";
import type { LogIn } from "../../identity/log-in.ts";
import { readOrigin } from "../../protocol/call-values.ts";
import { listAlgorithms } from "./algorithms.ts";
import { exchangeKeys } from "./exchange-keys.ts";
import { signWithFreshKey } from "./sign.ts";
import { verify } from "./verify.ts";

/** The dependencies of the service. */
export interface PqcServiceDeps {
  readonly provider: CryptoProvider;
  readonly issuer: Issuer;
  readonly logIn: LogIn;
}

/** Implements the service. */
export function pqcService({ provider, issuer, logIn }: PqcServiceDeps): ServiceImpl<typeof PqcService> {
  return {
    signData: ({ data, algorithm }) => signWithFreshKey(provider, data, algorithm),
    verifySignature: async (req) => ({ valid: await verify(provider, req) }),
    exchangeKeys: async (req) => {
      const exchange = await exchangeKeys(provider, req);
      return { ...exchange, sharedSecretLength: exchange.sharedSecret.length };
    },
    getAlgorithmInfo: ({ category }) => ({ algorithms: listAlgorithms(category) }),
    issueToken: async ({ username, password }, context) => {
      const { signal } = context;
      const input = {
        username,
        password,
        ...readOrigin(context),
        signal,
        header: { use: "grpc" },
      };
      const { token, expiresAt } = await logIn(input);
      return { token, expiresAt: timestampFromDate(expiresAt) };
    },
    getJwks: async () => ({ keys: [...(await issuer.publicJwks())] }),
    getHealth: async () => ({
      serviceStatus: (await issuer.isWorking()) ? "UP" : "DOWN",
      transport: "X25519MLKEM768",
      authentication: "ML-DSA-65 JWT",
    }),
  };
}
