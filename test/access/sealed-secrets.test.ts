/** Sealed secret keys that were changed in the database. */
import type { Kysely } from "kysely";
import { describe, expect, it } from "vitest";
import type { Schema } from "../../src/database/schema.ts";
import { present } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { describeRefusal, failureOf } from "../support/refusal.ts";
import { type Clients, describeAccess } from "./access-server.ts";
import { kinds, makeProposal } from "./owned-records.ts";

const data = bytesOf("hello");

/** Changes to a stored secret. test/secrets has the others. */
const changes: Readonly<Record<string, (db: Kysely<Schema>, identity: string) => Promise<unknown>>> = {
  "was changed": (db, identity) =>
    db
      .updateTable("sealed_secrets")
      .set({ ciphertext: new Uint8Array(60) })
      .where("identity", "=", identity)
      .execute(),
  "is missing": (db, identity) => db.deleteFrom("sealed_secrets").where("identity", "=", identity).execute(),
};

/**
 * A kind of record with a secret: how to create one, and a call that uses its secret. The first part of its
 * identity is its table.
 */
interface Keeper {
  readonly make: (clients: Clients) => Promise<string>;
  readonly use: (clients: Clients, id: string) => Promise<unknown>;
}

const keepers: Readonly<Record<string, Keeper>> = {
  kms_keys: { make: kinds.keys.make, use: ({ kms }, keyId) => kms.sign({ keyId, data }) },
  iot_devices: { make: kinds.devices.make, use: kinds.devices.uses[0] },
  vpn_tunnels: { make: kinds.tunnels.make, use: kinds.tunnels.uses[0] },
  wallets: { make: kinds.wallets.make, use: kinds.wallets.uses[0] },
  blockchain_validators: { make: kinds.validators.make, use: kinds.validators.uses[0] },
  defi_signers: {
    make: async ({ defi }) => {
      const { walletId, signers } = await defi.createMultisig({ signerCount: 1, threshold: 1 });
      return `${walletId}/${present(signers[0])}`;
    },
    use: async (clients, id) => {
      const [walletId = "", signer = ""] = id.split("/");
      return clients.defi.signProposal({ proposalId: await makeProposal(clients, walletId), signer });
    },
  },
};

describeAccess("a record whose sealed secret", (shared) => {
  describe.each(Object.entries(changes))("%s", (_what, change) => {
    it.each(Object.entries(keepers))(
      "counts as damaged and is named, but other records are unaffected: %s",
      async (table, keeper) => {
        const server = await shared();
        const ada = await server.makePerson();
        const [hurt, sound] = [await keeper.make(ada), await keeper.make(ada)];
        await server.tamper((db) => change(db, `${table}/${hurt}/secret-key`));
        const error = await failureOf(keeper.use(ada, hurt));
        const reason = table === "kms_keys" ? "KEY_DAMAGED" : "RECORD_DAMAGED";
        expect(describeRefusal(error)).toEqual({ code: "DataLoss", reason });
        expect(error.rawMessage).toContain(hurt.split("/").at(-1));
        await keeper.use(ada, sound);
      },
    );
  });
});
