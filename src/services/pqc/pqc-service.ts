/** pqc.PqcService: unpack, call, pack. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { connectionKey } from "../../calls/call-values.ts";
import type { ModuleDeps } from "../service-module.ts";
import { listAlgorithms } from "./algorithms.ts";
import { exchangeKeys, signWithFreshKey, verify } from "./one-time-keys.ts";
import type { HandshakeRecorder } from "./record-handshake.ts";
import { issueToken } from "./tokens.ts";

interface PqcServiceDeps extends Pick<ModuleDeps, "provider" | "issuer" | "logIn"> {
  readonly handshakes: HandshakeRecorder;
}

export function pqcService({
  provider,
  issuer,
  logIn,
  handshakes,
}: PqcServiceDeps): ServiceImpl<typeof PqcService> {
  return {
    signData: ({ data, algorithm }) => signWithFreshKey(provider, data, algorithm),
    verifySignature: async (req) => ({ valid: await verify(provider, req) }),
    exchangeKeys: (req) => exchangeKeys(provider, req),
    getAlgorithmInfo: ({ category }) => ({ algorithms: listAlgorithms(category) }),
    issueToken: (req, context) => issueToken(logIn, req, context, { use: "grpc" }),
    getJwks: async () => ({ keys: [...(await issuer.publicJwks())] }),
    getHealth: async () => ({
      serviceStatus: (await issuer.isWorking()) ? "UP" : "DOWN",
      transport: "X25519MLKEM768",
      authentication: "ML-DSA-65 JWT",
    }),
    getConnection: (_req, { values }) => ({ ...values.get(connectionKey)() }),
    recordHandshake: (req) => handshakes.record(req),
  };
}
