/** The plugin's side of age's plugin protocol (C2SP age-plugin, "Unwrapping with identity-v1"). */
import { CliError, usageError } from "../../src/cli/exit-codes.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { decodePluginIdentity } from "./bech32.ts";
import { ByteReader, FormatError } from "./byte-reader.ts";
import { readSealedFileKey, type SealedFileKey } from "./file-key.ts";
import { readStanza, type Stanza, writeStanza } from "./stanza.ts";

/** The pipes to age. */
export interface Channel {
  readonly input: AsyncIterable<Uint8Array>;
  /** Writes lines; adds the last line feed. */
  print(text: string): void;
}

/**
 * Finds the file key with the key that an identity names.
 *
 * @throws CliError, whose message age shows
 */
export type FindFileKey = (
  handle: string,
  sealed: readonly SealedFileKey[],
) => Promise<Uint8Array | undefined>;

/** Maximum bytes of a line; a hybrid stanza has 1,520. */
const maxLineBytes = 65_536;
/** Maximum bytes from age before its "done": several of age's largest headers. */
const maxRequestBytes = 8 * 1024 * 1024;

/** The file keys of one file, and its malformed stanzas with their positions. */
interface FileRequest {
  readonly sealed: SealedFileKey[];
  readonly faults: { readonly stanzaIndex: number; readonly message: string }[];
  stanzaCount: number;
}

interface UnwrapRequest {
  readonly identities: string[];
  readonly files: Map<string, FileRequest>;
}

/** Answers one run of the state machine identity-v1. Ends quietly if age closes its pipe. */
export async function runIdentityMachine(channel: Channel, find: FindFileKey): Promise<void> {
  const connection = connect(channel);
  const request = await readUnwrapRequest(connection);
  for (const [fileIndex, file] of request.files) {
    // Protocol: no file key for a file with a malformed stanza.
    for (const { stanzaIndex, message } of file.faults)
      await connection.send("error", ["stanza", fileIndex, String(stanzaIndex)], message);
    if (file.faults.length > 0) continue;
    const fileKey = await findFileKey(connection, request.identities, (handle) => find(handle, file.sealed));
    if (fileKey !== undefined)
      await connection.send("file-key", [fileIndex], fileKey).finally(() => wipe(fileKey));
  }
  connection.end();
}

/** Answers the state machine recipient-v1, which age starts to encrypt to an identity. */
export async function refuseEncryption(channel: Channel): Promise<void> {
  const connection = connect(channel);
  await connection.readAll(() => {});
  const advice =
    "encrypt to the recipient age1pq… that qsp kms age-recipient KEY prints, not to the identity";
  await connection.send("error", ["internal"], advice);
  connection.end();
}

/** Tries the identities in turn, and reports errors about them. */
async function findFileKey(
  connection: Connection,
  identities: readonly string[],
  find: (handle: string) => ReturnType<FindFileKey>,
): Promise<Uint8Array | undefined> {
  for (const [i, identity] of identities.entries()) {
    const handle = decodePluginIdentity(identity);
    try {
      if (handle === undefined)
        throw usageError("the identity is damaged; write it again with qsp kms age-identity");
      const fileKey = await find(handle);
      if (fileKey !== undefined) return fileKey;
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      await connection.send("error", ["identity", String(i)], error.message);
    }
  }
  return undefined;
}

async function readUnwrapRequest(connection: Connection): Promise<UnwrapRequest> {
  const request: UnwrapRequest = { identities: [], files: new Map() };
  await connection.readAll(({ type, args: [first = "", ...args], body }) => {
    if (type === "add-identity") request.identities.push(first);
    if (type !== "recipient-stanza") return;
    const [stanzaType = "", ...stanzaArgs] = args;
    if (!/^\d{1,10}$/.test(first) || stanzaType === "")
      throw usageError("age sent a recipient-stanza without a file index and a type");
    const file = request.files.getOrInsert(first, { sealed: [], faults: [], stanzaCount: 0 });
    const stanzaIndex = file.stanzaCount++;
    try {
      const sealed = readSealedFileKey({ type: stanzaType, args: stanzaArgs, body });
      if (sealed !== undefined) file.sealed.push(sealed);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      file.faults.push({ stanzaIndex, message: error.message });
    }
  });
  return request;
}

interface Connection {
  /** Reads stanzas until "done". */
  readAll(take: (stanza: Stanza) => void): Promise<void>;
  /** Sends a stanza and waits for the answer, whatever it is. */
  send(type: string, args: readonly string[], body: string | Uint8Array): Promise<void>;
  end(): void;
}

function connect({ input, print }: Channel): Connection {
  const reader = new ByteReader(input);
  let leftBytes = maxRequestBytes;
  const readLine = async (): Promise<string> => {
    const line = await reader.readLine(maxLineBytes);
    if (line === undefined) throw usageError("age closed the connection before the end of its request");
    leftBytes -= line.length + 1;
    if (leftBytes < 0) throw usageError(`age sent more than ${maxRequestBytes} bytes`);
    return line;
  };
  const read = async (): Promise<Stanza> => {
    try {
      return await readStanza(await readLine(), readLine);
    } catch (error) {
      throw error instanceof FormatError
        ? usageError(`age sent a malformed message: ${error.message}`)
        : error;
    }
  };
  const write = (stanza: Stanza): void => print(writeStanza(stanza).slice(0, -1));
  return {
    async readAll(take) {
      for (let stanza = await read(); stanza.type !== "done"; stanza = await read()) take(stanza);
    },
    async send(type, args, body) {
      write({ type, args, body: typeof body === "string" ? new TextEncoder().encode(body) : body });
      await read();
    },
    end: () => write({ type: "done", args: [], body: new Uint8Array() }),
  };
}
