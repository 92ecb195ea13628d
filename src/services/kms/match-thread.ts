/** Thread that checks secret halves of keys: see match-keys.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { createCryptoProvider } from "../../crypto/create-provider.ts";
import { openReaderHere } from "../../database/database.ts";
import { openKeyring } from "../../secrets/master-key.ts";
import { createVault } from "../../secrets/vault.ts";
import { type MatchReply, type MatchThreadInput, matchKeys, type PublicHalf } from "./match-keys.ts";

const { provider: name, location, masterKey } = workerData as MatchThreadInput;
const opening = createCryptoProvider(name);
const { reader } = openReaderHere(location);
const vault = createVault(openKeyring(masterKey, false));
let last: Promise<void> = Promise.resolve();

parentPort?.on("message", (keys: readonly PublicHalf[]) => {
  last = last.then(async () => parentPort?.postMessage(await answer(keys)));
});

async function answer(keys: readonly PublicHalf[]): Promise<MatchReply> {
  try {
    const readSecrets = (identities: readonly string[]) => vault.readSome(reader, identities);
    return { halves: await matchKeys(await opening, readSecrets, keys) };
  } catch (error) {
    return { failure: String(error) };
  }
}
