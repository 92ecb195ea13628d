import { ConfigError } from "../../config.ts";
import { rotateIssuerKey } from "../../identity/issuer.ts";
import { createIssuerStore } from "../../identity/issuer-store.ts";
import type { StoreVerb } from "./store-verb.ts";
import { withStore } from "./with-store.ts";

/** Creates a new key that signs tokens, with or without running servers. */
export const issuerRotate: StoreVerb = {
  line: "issuer rotate [revoke]",
  meaning:
    "Creates a new key that signs tokens. Tokens of the old key remain valid until they expire; with revoke, servers refuse them within a second.",
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
        ? "Servers refuse tokens of the previous keys within a second."
        : "Tokens of the previous key are accepted until they expire, within an hour.";
      return `Tokens are signed with the key ${keyId} from now on. ${rest}`;
    });
  },
};
