import { ConfigError } from "../config.ts";
import { createCryptoProvider } from "../crypto/create-provider.ts";
import { rotateIssuerKey } from "../services/pqc/issuer.ts";
import { createIssuerStore } from "../services/pqc/store.ts";
import { openStore } from "../storage/store.ts";
import type { Command } from "./command.ts";

/** Makes a new key that signs tokens, whether servers run or not. */
export const issuerRotate: Command = {
  name: "issuer rotate",
  operands: ["[revoke]"],
  meaning:
    "Makes a new key that signs tokens; those of the old key live on to their end, or with revoke end now.",
  async run({ operands: [word], config, location, masterKey }) {
    if (word !== undefined && word !== "revoke")
      throw new ConfigError(`"${word}" is not known; say revoke, or nothing`);
    const revoke = word === "revoke";
    const provider = await createCryptoProvider(config.cryptoProvider);
    try {
      const store = await openStore({ location, masterKey, provider, mode: "existing" });
      try {
        const parts = { provider, store: createIssuerStore(store), now: () => new Date() };
        const keyId = await rotateIssuerKey(parts, { revoke });
        const rest = revoke
          ? "Tokens of the keys before are refused from now on."
          : "Tokens of the key before are accepted until they end, within an hour.";
        process.stdout.write(`Tokens are signed with the key ${keyId} from now on. ${rest}\n`);
        return 0;
      } finally {
        await store.close();
      }
    } finally {
      await provider.close();
    }
  },
};
