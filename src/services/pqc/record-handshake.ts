/** Records TLS handshakes of the server with itself, at a limited rate. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { RecordHandshakeRequest } from "#gen/pqc/pqc_service_pb.ts";
import type { CertificateAlgorithm } from "../../crypto/x509.ts";
import { refuseForNow } from "../../errors.ts";
import { findThread } from "../../program-files.ts";

/** The groups that both ends support, by their names in node:tls; the first is the default. */
export const handshakeGroups = ["X25519MLKEM768", "X25519", "P-384"] as const;
const certificateAlgorithms = ["ECDSA-P256", "ML-DSA-65"] as const satisfies CertificateAlgorithm[];

export interface HandshakeInput {
  readonly group: (typeof handshakeGroups)[number];
  readonly certificate: CertificateAlgorithm;
}

/** A recorded connection, with the secrets that decrypt it. */
export interface RecordedHandshake {
  /** TLS records in the order in which they were sent. */
  readonly records: { readonly fromClient: boolean; readonly bytes: Uint8Array<ArrayBuffer> }[];
  /** Secrets in the NSS key log format (RFC 9850). */
  readonly keyLog: string;
  /** IANA name of the group. */
  readonly group: string;
  readonly cipherSuite: string;
  /** The server's certificate, in PEM. */
  readonly certificate: string;
}

/** Maximum recordings that begin in a period. */
const maxRecordings = 2;
/** The period, and the time for which a recording answers further calls, in milliseconds. */
const periodMs = 1000;

/** Milliseconds that a recording may take. */
const maxRecordMs = 10_000;
/** Milliseconds after which a thread without work ends. */
const idleMs = 10_000;

interface HandshakeRecorderDeps {
  readonly record: (input: HandshakeInput) => Promise<RecordedHandshake>;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

/** Records handshakes at a rate that all callers share, because anyone may ask for them. */
export class HandshakeRecorder {
  readonly #deps: HandshakeRecorderDeps;
  /** Newest first. */
  #recent: Recording[] = [];

  constructor(deps: Partial<HandshakeRecorderDeps> = {}) {
    this.#deps = { record: createThread(), nowMs: () => performance.now(), ...deps };
  }

  /**
   * Returns a new recording, or one of the last second.
   *
   * @throws RATE_LIMITED
   */
  record(req: Pick<RecordHandshakeRequest, "group" | "certificate">): Promise<RecordedHandshake> {
    const group = find(handshakeGroups, req.group);
    const certificate = find(certificateAlgorithms, req.certificate);
    const nowMs = this.#deps.nowMs();
    this.#recent = this.#recent.filter(({ endsMs }) => endsMs > nowMs);
    const known = this.#recent.find((one) => one.group === group && one.certificate === certificate);
    if (known !== undefined) return known.result;
    const oldest = this.#recent.at(maxRecordings - 1);
    if (oldest !== undefined) throw tooMany(Math.min(oldest.endsMs - nowMs, periodMs));
    const recording = this.#begin({ group, certificate });
    this.#recent.unshift(recording);
    return recording.result;
  }

  /** Begins a recording, after the one in progress. */
  #begin(input: HandshakeInput): Recording {
    const { record, nowMs } = this.#deps;
    const previous = this.#recent[0]?.result ?? Promise.resolve();
    const begin = (): Promise<RecordedHandshake> => record(input);
    const recording: Recording = {
      ...input,
      endsMs: Number.POSITIVE_INFINITY,
      result: previous.then(begin, begin).finally(() => {
        recording.endsMs = nowMs() + periodMs;
      }),
    };
    return recording;
  }
}

interface Recording extends HandshakeInput {
  readonly result: Promise<RecordedHandshake>;
  /** When it no longer counts and answers no more calls; infinite while it is in progress. */
  endsMs: number;
}

function tooMany(retryMs: number) {
  return refuseForNow(
    "RATE_LIMITED",
    `the server records at most ${maxRecordings} handshakes a second for all callers together; retry in a second, or ask for the group and certificate of the last recording`,
    retryMs,
    { limit: String(maxRecordings) },
  );
}

/** Narrows a name that the proto's rules admit; empty means the first. */
function find<T extends string>(names: readonly [T, ...T[]], name: string): T {
  const found = name === "" ? names[0] : names.find((one) => one === name);
  if (found === undefined) throw new Error(`the proto admits ${name}, which cannot be recorded`);
  return found;
}

/**
 * Creates a function that records in a thread, one handshake at a time. Only in this thread does a key log
 * exist. It starts on demand, because most servers never need it, and ends after a while without work.
 */
function createThread(): HandshakeRecorderDeps["record"] {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  const start = (): Worker => {
    const thread = findThread("services/pqc/handshake-thread.ts");
    // An error rejects the recording. Without a listener, it would end the process at any other time.
    const started = new Worker(thread, { name: "handshake", execArgv: [] }).on("error", () => {});
    return started.on("exit", () => {
      if (worker === started) worker = undefined;
    });
  };
  const end = (): void => {
    void worker?.terminate();
    worker = undefined;
  };
  return async (input) => {
    clearTimeout(idle);
    worker ??= start();
    worker.ref();
    worker.postMessage(input);
    try {
      const [recorded] = await once(worker, "message", { signal: AbortSignal.timeout(maxRecordMs) });
      worker.unref();
      idle = setTimeout(end, idleMs).unref();
      return recorded;
    } catch (error) {
      end();
      throw error;
    }
  };
}
