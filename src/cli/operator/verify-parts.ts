/** Verifies what belongs to intact records in other tables: signatures of proposals, and histories of tokens. */
import type { CryptoProvider } from "../../crypto/provider.ts";
import { readRecords } from "../../records/verify-records.ts";
import { areSignaturesValid } from "../../services/defi/execute-proposal.ts";
import { createDefiStore } from "../../services/defi/store.ts";
import { proposalTable } from "../../services/defi/tables.ts";
import { createNftStore } from "../../services/nft/store.ts";
import { tokenTable } from "../../services/nft/tables.ts";
import { isHistoryWhole } from "../../services/nft/verify.ts";
import type { Store } from "../../store/store.ts";

/** Returns a sentence for each fault. */
export async function verifyParts(store: Store, provider: CryptoProvider): Promise<string[]> {
  const [governance, tokens] = [createDefiStore(store), createNftStore(store)];
  const faults: string[] = [];
  for await (const { record: proposal, isIntact } of readRecords(store, proposalTable))
    if (isIntact && !(await areSignaturesValid({ provider, governance }, proposal)))
      faults.push(`The signatures of proposal ${proposal.proposalId} were changed outside of the server.`);
  for await (const { record: token, isIntact } of readRecords(store, tokenTable))
    if (isIntact && !(await isHistoryWhole({ tokens }, token)))
      faults.push(`The history of token ${token.tokenId} was changed outside of the server.`);
  return faults;
}
