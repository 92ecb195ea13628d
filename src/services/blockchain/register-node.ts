import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type RegisterNodeRequest,
  RegisterNodeResponseSchema,
  type ValidatorSchema,
} from "#gen/blockchain/blockchain_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import type { Stored } from "../../records/table-declaration.ts";
import { lendSecret } from "../../secrets/sealed-keys.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { validatorAlgorithm } from "./block.ts";
import type { ChainStore, Validator } from "./store.ts";
import { validatorQuota } from "./tables.ts";

export interface ChainDeps extends ServiceDeps {
  readonly chain: ChainStore;
}

/**
 * Creates a validator and stores its sealed secret key.
 *
 * @throws IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function registerNode(
  { provider, store, chain, now }: ChainDeps,
  { name }: RegisterNodeRequest,
  { owner, idempotentCall }: CallerInput,
) {
  return store.runIdempotent(idempotentCall, messageCodec(RegisterNodeResponseSchema), async (write) => {
    await store.requireRoom(validatorQuota, owner);
    return withFreshKeyPair(provider, validatorAlgorithm, ({ publicKey: key, secretKey }) => {
      const publicKey = key.exportRaw();
      const validator: Validator = {
        address: deriveAddress(publicKey),
        name,
        publicKey,
        owner,
        createdAt: now(),
      };
      return lendSecret(secretKey, (secret) =>
        write(async (transaction) => {
          await chain.validators.insert(transaction, validator, secret);
          return { validatorAddress: validator.address, publicKey, publicKeyPem: key.toPem() };
        }),
      );
    });
  });
}

export function packValidator({
  record: { address, name, publicKey, createdAt },
  isIntact,
}: Stored<Validator>): MessageInitShape<typeof ValidatorSchema> {
  if (!isIntact) return { validatorAddress: address, registrationStatus: "DAMAGED" };
  return {
    validatorAddress: address,
    name,
    registrationStatus: "REGISTERED",
    publicKey: Uint8Array.from(publicKey),
    publicKeyPem: encodePublicKeyPem(validatorAlgorithm, publicKey),
    registeredAt: timestampFromDate(createdAt),
  };
}
