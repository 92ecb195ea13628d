import { ConfigError } from "../../config.ts";
import { rotateIssuerKey } from "../../identity/issuer.ts";
import { createIssuerStore } from "../../identity/issuer-store.ts";
import type { StoreVerb } from "./store-verb.ts";
import { withStore } from "./with-store.ts";

/** Rotates the token signing key; works while servers run. */
export const issuerRotate: StoreVerb = {
  line: "issuer rotate [revoke]",
  meaning:
    "Creates a new token signing key. Tokens signed with the old key remain valid until they expire; with revoke, servers reject them within a second.",
  example: "qsp issuer rotate revoke",
  async run(input) {
    const [word] = input.operands;
    if (word !== undefined && word !== "revoke")
      throw new ConfigError(`"${word}" is unknown; use revoke or no operand`);
    const revoke = word === "revoke";
    return withStore(input, "existing", async (store, provider) => {
      const deps = { provider, store: createIssuerStore(store), now: () => new Date() };
      const keyId = await rotateIssuerKey(deps, { revoke });
      const rest = revoke
        ? "Servers reject tokens signed with earlier keys within a second."
        : "Tokens signed with the previous key remain valid until they expire, within an hour.";
      return `Key ${keyId} now signs tokens. ${rest}`;
    });
  },
};
