/** The signers of a proposal, those who signed, and the checks of a signature. */
import { reportBrowser, reportServer } from "../../checks.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import type { Signer } from "./signers.ts";
import type { Signed } from "./steps.ts";

/** Signers and their addresses. */
export function SignerList({ signers }: { readonly signers: readonly Signer[] }) {
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

interface SignatureResultProps extends Signed {
  /** All who may sign. */
  readonly signers: readonly Signer[];
}

/** A signature, what each side found of it, and who has signed by now. */
export function SignatureResult({ signature, signedBy, verdicts, signers }: SignatureResultProps) {
  return (
    <>
      <Bytes label="Signature" value={signature} />
      <Checks
        checks={[
          reportBrowser("the signature over the hash", verdicts.browser),
          reportServer("the signature over the hash", verdicts.server),
        ]}
      />
      <h3>Signatures, as the server counts them</h3>
      <Facts
        facts={Object.fromEntries(
          signers.map(({ name, address }) => [name, signedBy.includes(address) ? "signed" : "not yet"]),
        )}
      />
    </>
  );
}
