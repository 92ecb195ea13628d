import { hash, randomUUID } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type DeployContractRequest, DeployContractResponseSchema } from "#gen/dapp/dapp_service_pb.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { type Contract, contractQuota, type DappStore } from "./tables.ts";

export interface DappDeps extends ServiceDeps {
  readonly contracts: DappStore;
}

/**
 * Signs the 32 bytes of the SHA-256 hash of a contract's code with a new key pair (FIPS 204, section 5.2,
 * pure, empty context), and stores the hash and the signature.
 *
 * @throws IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function deployContract(
  { provider, store, contracts, now }: DappDeps,
  { code, name }: DeployContractRequest,
  { owner, idempotentCall }: CallerInput,
) {
  return store.runIdempotent(idempotentCall, messageCodec(DeployContractResponseSchema), async (write) => {
    await store.requireRoom(contractQuota, owner);
    const codeHash = hash("sha256", code, "hex");
    const { publicKey, signature } = await withFreshKeyPair(
      provider,
      "ML-DSA-65",
      async ({ publicKey, secretKey }) => ({
        publicKey,
        signature: await provider.sign(secretKey, Buffer.from(codeHash, "hex")),
      }),
    );
    const contract: Contract = {
      contractId: `contract-${randomUUID()}`,
      name,
      codeHash,
      signature,
      publicKey: publicKey.exportRaw(),
      owner,
      deployedAt: now(),
    };
    return write(async (transaction) => {
      await contracts.insert(transaction, contract);
      const { owner: _, deployedAt, ...shown } = contract;
      return { ...shown, deployedAt: timestampFromDate(deployedAt), publicKeyPem: publicKey.toPem() };
    });
  });
}
