/** A thread that checks keys: see match-keys.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { createCryptoProvider } from "../../crypto/create-provider.ts";
import { type MatchReply, type MatchRequest, type MatchThreadInput, matchKeys } from "./match-keys.ts";

const { provider: name } = workerData as MatchThreadInput;
const opening = createCryptoProvider(name);
let last: Promise<void> = Promise.resolve();

parentPort?.on("message", (keys: MatchRequest) => {
  last = last.then(async () => parentPort?.postMessage(await answer(keys)));
});

async function answer(keys: MatchRequest): Promise<MatchReply> {
  try {
    return { matches: await matchKeys(await opening, keys) };
  } catch (error) {
    return { failure: String(error) };
  }
}
