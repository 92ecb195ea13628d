import { existsSync } from "node:fs";
import { ConfigError } from "../../config.ts";
import { describeLocation, holdsTables } from "../../database/database.ts";
import { removeKeyRemains } from "../../secrets/master-key.ts";
import { tellOfRemains } from "./remains.ts";
import type { StoreVerb } from "./store-verb.ts";
import { withStore } from "./with-store.ts";

/** Creates a store and its master key, as the first start of a server does. */
export const storeInit: StoreVerb = {
  line: "store init",
  meaning:
    "Creates an empty store, and a master key if none exists. The first start of a server does the same; all other\n" +
    "verbs require an existing store, so that a misspelled path does not create one.",
  example: "qsp store init --data-dir ./data",
  async run(input) {
    const { location, masterKey } = input;
    // An empty file is left over from a run on a full disk.
    if (location.kind === "sqlite" && existsSync(location.path) && (await holdsTables(location)))
      throw new ConfigError(`the store ${location.path} already exists and remains unchanged`);
    tellOfRemains(removeKeyRemains(masterKey));
    const newKey = masterKey.kind === "file" && !existsSync(masterKey.path) ? masterKey.path : undefined;
    return withStore(input, "create", async () => {
      const ready = `The store ${describeLocation(location)} is ready.`;
      return newKey === undefined
        ? ready
        : `${ready}\nCreated a new master key, ${newKey}: store a copy of it apart from the store.`;
    });
  },
};
