/** dapp.DappService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { createSignCheck } from "../../crypto/can-sign.ts";
import { readCaller, readPrincipal } from "../../identity/principal.ts";
import type { Stored } from "../../records/table-declaration.ts";
import { readList } from "../fields.ts";
import { type DappDeps, deployContract } from "./deploy.ts";
import { dualSign, dualVerify } from "./dual-signatures.ts";
import type { Contract } from "./tables.ts";

export function dappService(deps: DappDeps): ServiceImpl<typeof DappService> {
  const { provider, store, contracts } = deps;
  const listWorking = createSignCheck(provider, ["ECDSA-P256", "ML-DSA-65"]);
  return {
    deployContract: (req, context) => deployContract(deps, req, readCaller(context)),
    dualSign: ({ data }) => dualSign(provider, data),
    dualVerify: async (req) => {
      const { ecdsaValid, mldsaValid } = await dualVerify(provider, req);
      return { ecdsaValid, mldsaValid, bothValid: ecdsaValid && mldsaValid };
    },
    listContracts: async (fields, context) => {
      const { rows, ...page } = await readList(contracts, fields, { principal: readPrincipal(context) });
      const pack = ({ record, isIntact }: Stored<Contract>) => {
        const { deployedAt, owner: _, ...contract } = record;
        if (!isIntact) return { contractId: contract.contractId, damaged: true };
        return { ...contract, deployedAt: timestampFromDate(deployedAt) };
      };
      return { ...page, contracts: rows.map(pack) };
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
