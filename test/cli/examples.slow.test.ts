import { createHash, randomBytes } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it, vi } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { type CreateKeyRequestSchema, KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import { loadAllVerbs } from "../../src/cli/groups.ts";
import { listSettings } from "../../src/config.ts";
import { isMissing } from "../interop/tools.ts";
import { password } from "../support/passwords.ts";
import type { Run } from "../support/run-here.ts";
import { loadSettings, verbTable } from "../support/whole-program.ts";
import { launch, program, qsp, qspDone, qspJson, timeout, useServer } from "./qsp.ts";

const server = useServer();
/** Excludes services, which run until a signal. Their own tests start them. */
const verbs = (await loadAllVerbs(verbTable)).filter(({ isService }) => !isService);

/** Progress lines of operator verbs, and comments next to a secret. */
const progress = /^(?:[\d,]+ of [\d,]+ [\w ]+|(?:C|New c)lient secret of orders.*)\n/gm;

/** The directory that an example runs in, and the variables that it uses. */
interface Stage {
  readonly cwd: string;
  readonly url: string;
  readonly env: Record<string, string>;
}

/** What an example may need, by the text that shows the need: command lines, or a function. */
const props: readonly (readonly [RegExp, ...(string | ((stage: Stage) => unknown))[]])[] = [
  [/password\.txt/, ({ cwd }) => writeFileSync(join(cwd, "password.txt"), "correct horse")],
  [/contract\.txt/, ({ cwd }) => writeFileSync(join(cwd, "contract.txt"), "the contract")],
  [/\$PASSWORD/, ({ env }) => Object.assign(env, { PASSWORD: password })],
  [/qsp (store verify|audit|chain verify|backup|restore|master-key|issuer|user|client)/, "store init"],
  [
    /qsp (store verify|audit|chain verify|backup|restore|master-key|issuer|user [^a])/,
    (stage) => qspDone(["user", "add", "ada"], { ...stage, stdin: password }),
  ],
  [/qsp client [^a]/, "client add orders"],
  [
    /qsp log (prove|verify)/,
    async () => {
      await server.client(KmsService).createKey({});
      // The server signs at most one checkpoint per second.
      const ask = () => server.client(LogService).getInclusionProof({ log: "audit", leafIndex: 0 });
      await vi.waitFor(ask, { timeout, interval: 50 });
    },
    "log checkpoint audit --out audit.checkpoint",
    async ({ cwd }) => {
      const { logs } = await server.client(LogService).listLogs({});
      const key = logs.find((one) => one.log === "audit")?.verifierKeys[0] ?? "";
      writeFileSync(join(cwd, "audit.vkey"), key);
    },
  ],
  [
    /restore monday/,
    "backup monday.backup",
    ({ cwd }) => {
      mkdirSync(join(cwd, "restored"));
      cpSync(join(cwd, "data", "master.key"), join(cwd, "restored", "master.key"));
    },
  ],
  [/share-1\.txt/, "master-key split --shares 5 --threshold 3"],
  [/ca issue/, "ca init"],
  [
    /\$KEY\b/,
    async ({ cwd, env }) => {
      const keyId = await makeKey({});
      const signed = await server.client(KmsService).sign({ keyId, data: Buffer.from("the contract") });
      writeFileSync(join(cwd, "contract.txt.sig"), signed.result?.signature ?? "");
      env.KEY = keyId;
    },
  ],
  [
    /\$KEM_KEY\b/,
    async ({ cwd, env }) => {
      const keyId = await makeKey({ usage: "KEM" });
      const { result } = await server.client(KmsService).encapsulate({ keyId });
      writeFileSync(join(cwd, "message.ct"), result?.ciphertext ?? "");
      env.KEM_KEY = keyId;
    },
  ],
  [
    /\$ENCRYPTION_KEY\b|password\.enc/,
    async ({ cwd, env }) => {
      const keyId = await makeKey({ usage: "ENCRYPT" });
      const plaintext = Buffer.from("correct horse");
      const { result } = await server.client(KmsService).encrypt({ keyId, plaintext });
      writeFileSync(join(cwd, "password.enc"), result?.ciphertext ?? "");
      env.ENCRYPTION_KEY = keyId;
    },
  ],
  [
    /name\/archive/,
    async ({ cwd }) => {
      await makeKey({ name: "archive", algorithm: "X-Wing", usage: "KEM" }).catch(() => {});
      writeFileSync(join(cwd, "report.pdf"), "the report");
    },
  ],
  [
    /backup\.age/,
    ({ cwd }) => writeFileSync(join(cwd, "file"), "the backup"),
    "encrypt file --key name/archive --out backup.age",
  ],
  [
    /\$(DISABLED|SCHEDULED)_KEY\b|\$GRANT\b/,
    async ({ env }) => {
      const kms = server.client(KmsService);
      env.DISABLED_KEY = await makeKey({});
      env.SCHEDULED_KEY = await makeKey({});
      await kms.disableKey({ keyId: env.DISABLED_KEY });
      await kms.destroyKey({ keyId: env.SCHEDULED_KEY, afterSeconds: 86_400 });
      const grant = { keyId: env.DISABLED_KEY, grantee: "bob", operations: ["SIGN"] };
      env.GRANT = (await kms.createGrant(grant)).grant?.grantId ?? "";
    },
  ],
  [/signer\.key/, "keygen signer"],
  [
    /\$WALLET\b|wallet\.pub/,
    async ({ cwd, env }) => {
      const wallets = server.client(WalletService);
      const { walletId, publicKeyPem } = await wallets.createWallet({});
      const { signature } = await wallets.signTransaction({ walletId, data: Buffer.from("pay 7 to bob") });
      writeFileSync(join(cwd, "wallet.pub"), publicKeyPem);
      writeFileSync(join(cwd, "transaction.sig"), signature);
      env.WALLET = walletId;
    },
  ],
  [
    /\$TOKEN\b/,
    async ({ env }) => {
      env.TOKEN = (await server.client(NftService).mint({ name: "Night sky" })).tokenId;
    },
  ],
  [/chain add/, () => server.client(BlockchainService).registerNode({})],
  [/device (send|stream|authenticate)/, "device register"],
  [/tunnel (ping|send|down)/, "tunnel up"],
  [
    /image\.bin/,
    ({ cwd }) => writeFileSync(join(cwd, "image.bin"), "an image"),
    "keygen vendor --algorithm ML-DSA-87",
    "sign image.bin --sha256 --key-file vendor.key",
    "device register",
  ],
  [/ada\.pub/, "keygen ada", "keygen bob"],
  [
    /\$MULTISIG\b/,
    async ({ env }) => {
      const { walletId } = await server.client(DefiService).createMultisig({ signerCount: 2, threshold: 1 });
      env.MULTISIG = walletId;
    },
  ],
  [
    /\$PROPOSAL\b/,
    "keygen ada",
    async (stage) => {
      const line = ["multisig", "create", "--signer", "ada.pub", "--threshold", "1"];
      stage.env.PROPOSAL = await propose(String((await qspJson(line, stage)).walletId));
    },
  ],
  [
    /\$SIGNED_PROPOSAL\b/,
    async ({ env }) => {
      const defi = server.client(DefiService);
      const { walletId, signers } = await defi.createMultisig({ signerCount: 1, threshold: 1 });
      const proposalId = await propose(walletId);
      await defi.signProposal({ proposalId, signer: signers[0] ?? "" });
      env.SIGNED_PROPOSAL = proposalId;
    },
  ],
  [
    /qsp wireguard/,
    async ({ env }) => {
      watching ??= connectGateway();
      await watching;
      // An exported function of bash, in place of WireGuard's program.
      env["BASH_FUNC_wg%%"] = `() { echo ${makeWireguardKey().toBase64()}; }`;
    },
  ],
  [
    /qsp wireguard leave/,
    (stage) => {
      const key = makeWireguardKey().toBase64();
      return qspDone(["wireguard", "join", "laptop", "--wireguard-public-key", key], stage);
    },
  ],
  [
    /qsp tuf/,
    async (stage) => {
      const ask = async (line: string) => JSON.parse(await qspDone(`${line} --json`.split(" "), stage));
      const hashOf = ({ metadata }: { metadata: string }) =>
        createHash("sha256").update(Buffer.from(metadata, "base64")).digest("hex");
      const sign = (root: { proposalId: string; metadata: string }) =>
        ask(`tuf sign-root firmware ${root.proposalId} --key-file ada.key --sha256 ${hashOf(root)}`);
      writeFileSync(join(stage.cwd, "app.bin"), "an image");
      if (firmware === undefined) {
        await ask("keygen ada");
        const { walletId } = await ask("multisig create --signer ada.pub --threshold 1");
        const { proposal } = await ask(`tuf init firmware ${walletId}`);
        await sign(proposal);
        await ask(`tuf publish-root firmware ${proposal.proposalId}`);
        firmware = { walletId, key: readFileSync(join(stage.cwd, "ada.key")) };
      }
      writeFileSync(join(stage.cwd, "ada.key"), firmware.key);
      stage.env.SIGNERS_WALLET = firmware.walletId;
      await ask("tuf add firmware sensor/app.bin app.bin");
      const [unsigned, signed] = [
        (await ask("tuf rotate firmware")).proposal,
        (await ask("tuf rotate firmware")).proposal,
      ];
      stage.env.ROOT_PROPOSAL = unsigned.proposalId;
      stage.env.ROOT_SHA256 = hashOf(unsigned);
      stage.env.SIGNED_ROOT = signed.proposalId;
      await sign(signed);
    },
  ],
];

async function makeKey(request: MessageInitShape<typeof CreateKeyRequestSchema>): Promise<string> {
  return (await server.client(KmsService).createKey(request)).result?.keyId ?? "";
}

/** The wallet and the key of the signer of the repository "firmware", once it exists. */
let firmware: { readonly walletId: string; readonly key: Buffer } | undefined;

/** The stream of the gateway's agent, once it is connected. */
let watching: Promise<void> | undefined;

async function connectGateway(): Promise<void> {
  const { promise: listed, resolve } = Promise.withResolvers<void>();
  const follow = async (): Promise<void> => {
    const gateway = { wireguardPublicKey: makeWireguardKey(), endpoint: "192.0.2.1:51820" };
    for await (const { event } of server.client(WireguardService).watchPeers(gateway))
      if (event.case === "listed") resolve();
  };
  // The stream ends with the server.
  follow().catch(() => {});
  await listed;
}

function makeWireguardKey(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([...randomBytes(31), 0]);
}

async function propose(walletId: string): Promise<string> {
  const { proposal } = await server
    .client(DefiService)
    .createProposal({ walletId, data: Buffer.from("pay") });
  return proposal?.proposalId ?? "";
}

async function stageFor(example: string): Promise<Stage> {
  const stage = { ...server.place(), env: {} as Record<string, string> };
  const steps = props.flatMap(([sign, ...needs]) => (sign.test(example) ? needs : []));
  for (const step of steps) await (typeof step === "string" ? qspDone(step.split(" "), stage) : step(stage));
  return stage;
}

/** A directory for PATH in which `qsp` is the program. */
function installIn(cwd: string): string {
  const bin = join(cwd, "bin");
  mkdirSync(bin);
  symlinkSync(program, join(bin, "qsp"));
  return [bin, process.env.PATH].join(delimiter);
}

const inBash = (script: string, stage: Stage) =>
  launch("bash", ["--norc", "-euo", "pipefail", "-c", script], stage).end;

/** Runs an example as its reader would. A single command runs here, with the arguments that the shell gives it. */
async function runExample(example: string, stage: Stage): Promise<Run> {
  if (/[|<>;&()]/.test(example))
    return inBash(example, { ...stage, env: { ...stage.env, PATH: installIn(stage.cwd) } });
  const { stdout } = await inBash(`qsp() { printf '%s\\0' "$@"; }; ${example}`, stage);
  return qsp(stdout.split("\0").slice(0, -1), stage);
}

describe.skipIf(isMissing("bash"))("the help examples, exactly as printed", () => {
  it.each(verbs.map(({ name, example }) => ({ name, example })))(
    "$example",
    { timeout },
    async ({ example }) => {
      const { code, stderr } = await runExample(example, await stageFor(example));
      expect({ code, stderr: stderr.replace(progress, "") }).toEqual({ code: 0, stderr: "" });
    },
  );
});

describe("the help", { timeout }, () => {
  it("has a separate example for each verb", () => {
    for (const { name, example } of verbs) expect(example).toContain(`qsp ${name}`);
    expect(new Set(verbs.map(({ example }) => example)).size).toBe(verbs.length);
  });

  it("of serve shows all settings with their variables", async () => {
    const help = await qspDone(["serve", "--help"], server.place());
    for (const { name } of listSettings(await loadSettings()))
      expect(help).toMatch(new RegExp(`\\bQSP_${name.replaceAll("-", "_").toUpperCase()}\\b`));
  });
});
