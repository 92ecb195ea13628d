/**
 * The table of pages. The console loads a page when a reader opens it, and hides it if its service is not
 * running. Tools are for people who work with the server's services, and views show the server itself. A
 * story is a folder in stories/ whose page.tsx declares each step as one object (story-step.ts), and the
 * story with its steps in order. Read stories/sign first.
 *
 * - `run` makes calls, computes and checks. It needs no browser, and console/test/steps tests it.
 *   `call(Service.method.name, request)` makes a call with generated code and returns the answer;
 *   `expectRefusal(call(…), reason)` returns a refusal, and throws any other failure. Verify every
 *   signature that the server vouches for again here: verifyHere, loadKem and sha256 in algorithms.ts.
 * - `after` names the steps whose results `run` needs; when one of them runs again, the step loses its own
 *   result. `fields` are the reader's choices (parts/step-fields.tsx), `says` sums up the result in one
 *   sentence, which screen readers announce, `shows` displays it with the functions in parts/show.tsx, and
 *   `draws` draws it in the sequence diagram. `plan` is the call, if it is known before the button is pressed.
 *
 * Each step has an address derived from its title, such as "#/keys/steps/rotate". The page keeps a story as
 * the reader left it (kept-pages.tsx). Use the buttons, fields and headings from parts/, which support
 * keyboard, screen reader, phone and both themes. Never build markup from strings: the page's
 * Content-Security-Policy forbids it.
 */
import type { ComponentType } from "preact";
import type { PagePath } from "./parts/icon.tsx";
import { settings } from "./settings.ts";

export interface PageEntry {
  /** Its address: "#/sign". Also names its icon and colour (parts/icon.tsx). */
  readonly path: PagePath;
  readonly title: string;
  /** A one-sentence description. */
  readonly summary: string;
  /** Full name of the service that it calls; undefined if it needs none. */
  readonly service?: string;
  /** Whether it works without a token on a server that requires one. */
  readonly isOpen?: boolean;
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
}

const pages = {
  stories: [
    {
      path: "sign",
      title: "Sign and verify",
      summary: "The server signs, both sides verify, and one changed byte breaks the signature.",
      service: "pqc.PqcService",
      load: () => import("./stories/sign/page.tsx"),
    },
    {
      path: "key-exchange",
      title: "Key exchange",
      summary: "Browser and server agree on a secret over a connection that anyone can read.",
      service: "pqc.PqcService",
      load: () => import("./stories/key-exchange/page.tsx"),
    },
    {
      path: "tokens",
      title: "Tokens",
      summary: "Decode a log-in token, verify it with the published keys, and watch a forgery fail.",
      service: "pqc.TokenService",
      load: () => import("./stories/tokens/page.tsx"),
    },
    {
      path: "keys",
      title: "Managed keys",
      summary: "Create, use, rotate and destroy a key, and watch the audit log record each use.",
      service: "kms.KmsService",
      load: () => import("./stories/keys/page.tsx"),
    },
    {
      path: "encryption",
      title: "Encryption",
      summary:
        "Your browser encrypts a record that only the key service can decrypt, and moves it to a new key.",
      service: "kms.KmsService",
      load: () => import("./stories/encryption/page.tsx"),
    },
    {
      path: "devices",
      title: "Devices",
      summary:
        "A device registers, authenticates, sends readings, and accepts firmware only from its vendor.",
      service: "iot.IotService",
      load: () => import("./stories/devices/page.tsx"),
    },
    {
      path: "tunnel",
      title: "Tunnel",
      summary:
        "Two ends agree on a key, exchange packets and replace the key, and a swapped key is detected.",
      service: "vpn.VpnService",
      load: () => import("./stories/tunnel/page.tsx"),
    },
    {
      path: "governance",
      title: "Governance",
      summary:
        "A proposal gets two of three signatures, an outsider's signature is refused, and it executes once.",
      service: "defi.DefiService",
      load: () => import("./stories/governance/page.tsx"),
    },
    {
      path: "chain",
      title: "Blockchain",
      summary:
        "Signed blocks arrive as a stream. Change one in your copy, and it and all later blocks turn red.",
      service: "blockchain.BlockchainService",
      load: () => import("./stories/chain/page.tsx"),
    },
    {
      path: "log",
      title: "Verifiable log",
      summary:
        "A signed root covers every entry. Your browser checks a proof against it and detects a flipped bit.",
      service: "tlog.LogService",
      load: () => import("./stories/log/page.tsx"),
    },
    {
      path: "provenance",
      title: "Provenance",
      summary: "Mint and transfer a token, and detect one changed letter in its history.",
      service: "nft.NftService",
      load: () => import("./stories/provenance/page.tsx"),
    },
    {
      path: "contracts",
      title: "Contracts",
      summary: "Hash and sign code, sign a message with two algorithms, and break one of the signatures.",
      service: "dapp.DappService",
      load: () => import("./stories/contracts/page.tsx"),
    },
    {
      path: "wallets",
      title: "Wallets",
      summary: "Recompute an address. Sign a transaction, then alter, steal and replay it.",
      service: "wallet.WalletService",
      load: () => import("./stories/wallets/page.tsx"),
    },
  ],
  views: [
    {
      path: "handshake",
      title: "Handshake",
      summary: "Take a quantum-safe TLS 1.3 handshake apart, byte by byte, and flip a bit of it.",
      service: "pqc.PqcService",
      isOpen: true,
      load: () => import("./views/handshake/page.tsx"),
    },
    {
      path: "algorithms",
      title: "Algorithms",
      summary: "Compare sizes, security categories and measured times of all algorithms, old and new.",
      service: "pqc.PqcService",
      isOpen: true,
      load: () => import("./views/algorithms/page.tsx"),
    },
    {
      path: "tokens/inspect",
      title: "Token inspector",
      summary: "Paste a signed token, take it apart, change it, and verify it with any key set.",
      service: "pqc.TokenService",
      isOpen: true,
      load: () => import("./views/token-inspector/page.tsx"),
    },
    {
      path: "activity",
      title: "Activity",
      summary: "Watch this server work: calls per second, latency and errors, live.",
      isOpen: true,
      load: () => import("./views/activity/page.tsx"),
    },
  ],
  tools: [
    {
      path: "keys/manage",
      title: "Key manager",
      summary: "Find, create, rotate, disable and destroy keys, and grant them to other users.",
      service: "kms.KmsService",
      load: () => import("./tools/key-manager/page.tsx"),
    },
    {
      path: "keys/audit",
      title: "Audit log",
      summary: "Search the log of all key use, follow it live, and verify it.",
      service: "kms.KmsService",
      load: () => import("./tools/audit-log/page.tsx"),
    },
    {
      path: "inventory",
      title: "Inventory",
      summary: "All records in one table: keys, devices, wallets and more.",
      load: () => import("./tools/inventory/page.tsx"),
    },
  ],
} satisfies Record<string, readonly PageEntry[]>;

function keepShown(entries: readonly PageEntry[]): readonly PageEntry[] {
  return entries.filter(({ service }) => service === undefined || settings.services.has(service));
}

export const stories = keepShown(pages.stories);
export const views = keepShown(pages.views);
export const tools = keepShown(pages.tools);
