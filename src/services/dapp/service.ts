/** dapp.DappService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { createSignCheck } from "../../crypto/can-sign.ts";
import { readIdempotentCall, readPrincipal } from "../../identity/principal.ts";
import { listSeenBy } from "../../records/ownership.ts";
import type { Stored } from "../../records/table-declaration.ts";
import { readPage } from "../fields.ts";
import { type DappDeps, deployContract } from "./deploy.ts";
import { dualSign } from "./dual-sign.ts";
import { dualVerify } from "./dual-verify.ts";
import type { Contract } from "./store.ts";
import { contractList } from "./tables.ts";

/** The dependencies of the service. */
export interface DappServiceDeps extends DappDeps {}

/** Implements the service. */
export function dappService(deps: DappServiceDeps): ServiceImpl<typeof DappService> {
  const { provider, store, contracts } = deps;
  const listWorking = createSignCheck(provider, ["ECDSA-P256", "ML-DSA-65"]);
  return {
    deployContract: ({ code, name }, context) =>
      deployContract(deps, {
        code,
        name,
        owner: readPrincipal(context).userId,
        idempotentCall: readIdempotentCall(context),
      }),
    dualSign: ({ data }) => dualSign(provider, data),
    dualVerify: async (req) => {
      const { ecdsaValid, mldsaValid } = await dualVerify(provider, req);
      return { ecdsaValid, mldsaValid, bothValid: ecdsaValid && mldsaValid };
    },
    listContracts: async (fields, context) => {
      const principal = readPrincipal(context);
      const page = readPage(fields, listSeenBy(principal, contractList));
      const { rows, nextPageToken } = await contracts.list(page, principal);
      const pack = ({ record, isIntact }: Stored<Contract>) => {
        const { deployedAt, owner: _, ...contract } = record;
        if (!isIntact) return { contractId: contract.contractId, damaged: true };
        return { ...contract, deployedAt: timestampFromDate(deployedAt) };
      };
      return { contracts: rows.map(pack), nextPageToken, totalSize: await contracts.count(principal) };
    },
    getHealth: async () => {
      const [count, working] = await Promise.all([store.ifReachable(() => contracts.count()), listWorking()]);
      const ecdsaAvailable = working.has("ECDSA-P256");
      const mlDsa65Available = working.has("ML-DSA-65");
      const isUp = count !== undefined && ecdsaAvailable && mlDsa65Available;
      return { serviceStatus: isUp ? "UP" : "DOWN", ecdsaAvailable, mlDsa65Available };
    },
  };
}
