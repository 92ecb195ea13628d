import { create } from "@bufbuild/protobuf";
import { expect, it, onTestFinished } from "vitest";
import { AddBlockRequestSchema, RegisterNodeRequestSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createOpenKeys } from "../../src/secrets/sealed-keys.ts";
import { createAddBlock } from "../../src/services/blockchain/add-block.ts";
import { registerNode } from "../../src/services/blockchain/register-node.ts";
import { createChainStore } from "../../src/services/blockchain/store.ts";
import { openTestStore } from "../support/open-store.ts";
import { systemCaller } from "../support/system-caller.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { present } from "./answers.ts";

it("signs a block even though the cache evicted the validator's key", async () => {
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(makeTemporaryDirectory(), provider);
  onTestFinished(async () => {
    await store.close();
    await provider.close();
  });
  const deps = { provider, store, chain: createChainStore(store), now: () => new Date() };
  const register = (name: string) =>
    registerNode(deps, create(RegisterNodeRequestSchema, { name }), systemCaller);
  const validators = [await register("one"), await register("two"), await register("three")];
  // With a cache of one key, each call evicts the previous call's key.
  const addBlock = createAddBlock(deps, createOpenKeys(store, provider, 1));
  const adding = validators.map(({ validatorAddress }) => {
    const request = { data: new Uint8Array([1]), validatorAddress: present(validatorAddress) };
    return addBlock(create(AddBlockRequestSchema, request), systemCaller);
  });
  expect(await Promise.all(adding)).toHaveLength(3);
});
