/** Who may sign a proposal, and who did. */
import { Facts } from "../../parts/facts.tsx";
import type { Signer } from "./signers.ts";

/** Signers and their addresses. */
export function Signers({ signers }: { readonly signers: readonly Signer[] }) {
  return (
    <>
      <h3>Addresses of the signers</h3>
      <Facts
        facts={Object.fromEntries(
          signers.map(({ name, address, place }) => [`${name}, ${place}`, <code>{address}</code>]),
        )}
      />
    </>
  );
}

interface SignaturesProps {
  readonly signers: readonly Signer[];
  /** Addresses of those who signed. */
  readonly signedBy: readonly string[];
}

/** Who signed, and who has not. */
export function Signatures({ signers, signedBy }: SignaturesProps) {
  return (
    <>
      <h3>Signatures, as the server counts them</h3>
      <Facts
        facts={Object.fromEntries(
          signers.map(({ name, address }) => [name, signedBy.includes(address) ? "signed" : "not yet"]),
        )}
      />
    </>
  );
}
