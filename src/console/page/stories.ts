/**
 * The table of stories. A story is a file in stories/ that exports a component named Page, and a line here; the page
 * fetches it when a reader opens it, and leaves it out where its service does not run.
 *
 * To write one, read stories/sign.tsx, which uses most of what there is:
 *
 * - Page returns <Story title lead> with a <Step> for each thing that happens, in order.
 * - useStep(run, after) is what a step does. `run` gets a caller: `caller.call(Service.method.name, request)` makes a
 *   call with generated code and gives the answer; `caller.callRefused(…)` makes one that the server is to refuse and
 *   gives the Failure, with its reason. Each call is shown with its request, answer, sizes, curl and grpcurl. What
 *   `run` returns is the step's value; `after` names steps that come first, and whose new outcome empties this one.
 *   Read what another step gave with resultOf(step): it is there whenever `run` is.
 * - <Step step title action outcome result plan>: `children` say what happens and why, and hold the fields; `outcome`
 *   makes one sentence of the value, which is read out; `result` shows it; `plan` is planCall(method, request) for a
 *   call that is known before the button is pressed.
 * - In `result`: <Bytes> for keys, signatures and ciphertexts, <ByteChange> for a byte that was changed, <Facts> for
 *   names and values, <Checks> for what each side found (bothSides and equality write the usual ones), <FailureNote
 *   isExpected> for a refusal that was wanted, <SizeChart> for sizes.
 * - Whatever the server claims of a signature, check again here: loadSigner, loadKem and sha256 in algorithms.ts.
 * - useStream() watches a server stream, as stories/keys.tsx does with the audit log.
 * - Buttons, fields and headings come from these parts, so that keyboard, screen reader, phone and both themes work. No
 *   style attributes and no markup from strings: the page's Content-Security-Policy forbids the first.
 */
import type { ComponentType } from "preact";

/** A page of the console. */
export interface StoryEntry {
  /** Its address: "#/sign". */
  readonly path: string;
  readonly title: string;
  /** What a reader sees there, in one sentence. */
  readonly summary: string;
  /** Full name of the service that it calls. */
  readonly service: string;
  /** Names the standards that are at work. */
  readonly standards: string;
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
}

export const stories: readonly StoryEntry[] = [
  {
    path: "sign",
    title: "Sign and verify",
    summary: "A signature is made, checked on both sides, and broken by one byte.",
    service: "pqc.PqcService",
    standards: "ML-DSA (FIPS 204), SLH-DSA (FIPS 205)",
    load: () => import("./stories/sign/page.tsx"),
  },
  {
    path: "key-exchange",
    title: "Key exchange",
    summary: "Browser and server agree on a secret over a line that others can read.",
    service: "pqc.PqcService",
    standards: "ML-KEM (FIPS 203)",
    load: () => import("./stories/key-exchange/page.tsx"),
  },
  {
    path: "tokens",
    title: "Tokens",
    summary: "A log-in token is taken apart, verified against the published keys, and forged in vain.",
    service: "pqc.TokenService",
    standards: "JWT with ML-DSA-65 (RFC 9964)",
    load: () => import("./stories/tokens/page.tsx"),
  },
  {
    path: "keys",
    title: "Managed keys",
    summary: "A key lives from its creation to its destruction, and the audit chain records each use.",
    service: "kms.KmsService",
    standards: "ML-DSA (FIPS 204), SHA-256 chain",
    load: () => import("./stories/keys/page.tsx"),
  },
  {
    path: "devices",
    title: "Devices",
    summary: "A device registers, proves who it is, sends readings, and takes firmware of its vendor alone.",
    service: "iot.IotService",
    standards: "ML-DSA-44 and ML-DSA-87 (FIPS 204)",
    load: () => import("./stories/devices/page.tsx"),
  },
  {
    path: "tunnel",
    title: "Tunnel",
    summary: "Two ends agree on a key, packets flow, the key is replaced, and a swapped key is caught.",
    service: "vpn.VpnService",
    standards: "ML-KEM-1024 (FIPS 203), ML-DSA-65 (FIPS 204), AES-256-GCM",
    load: () => import("./stories/tunnel.tsx"),
  },
  {
    path: "governance",
    title: "Governance",
    summary: "A proposal gathers two of three signatures, a stranger's is refused, and it executes once.",
    service: "defi.DefiService",
    standards: "ML-DSA-65 (FIPS 204), canonical JSON (RFC 8785)",
    load: () => import("./stories/governance/page.tsx"),
  },
  {
    path: "chain",
    title: "Chain of blocks",
    summary:
      "Signed blocks arrive as a stream; you tamper with one in your copy, and it and what follows turn red.",
    service: "blockchain.BlockchainService",
    standards: "ML-DSA-65 (FIPS 204), SHA-256 chain",
    load: () => import("./stories/chain/page.tsx"),
  },
  {
    path: "provenance",
    title: "Token and provenance",
    summary: "A token is minted, goes from owner to owner, and one changed letter shows.",
    service: "nft.NftService",
    standards: "ML-DSA-65 (FIPS 204), canonical JSON (RFC 8785)",
    load: () => import("./stories/provenance/page.tsx"),
  },
  {
    path: "contracts",
    title: "Contracts",
    summary: "Code is hashed and signed; a message is signed twice over, and one half is broken.",
    service: "dapp.DappService",
    standards: "ECDSA (FIPS 186-5), ML-DSA-65 (FIPS 204), composite signatures",
    load: () => import("./stories/contracts.tsx"),
  },
  {
    path: "wallets",
    title: "Wallets",
    summary: "An address is computed again, a transaction signed, altered, stolen and replayed.",
    service: "wallet.WalletService",
    standards: "ML-DSA-65 (FIPS 204)",
    load: () => import("./stories/wallets/page.tsx"),
  },
];
