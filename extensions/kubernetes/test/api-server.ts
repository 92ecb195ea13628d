/** The KMS v2 client of Kubernetes as a program that takes orders: go-kubernetes. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

/** What the API server is to do; main.go describes the fields. Bytes are base64. */
export interface KubernetesOrder {
  readonly order: "load" | "health" | "store" | "read" | "change" | "status" | "encrypt" | "decrypt";
  readonly path?: string;
  readonly endpoint?: string;
  readonly data?: string;
  readonly part?: "key_id" | "source" | "annotation" | "annotations";
  readonly keyId?: string;
  readonly ciphertext?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What came of an order. */
export interface KubernetesOutcome {
  readonly error?: string;
  /** The gRPC code as Go names it, such as "NotFound". */
  readonly code?: string;
  readonly data?: string;
  /** Whether the API server would write the object again, with the current key. */
  readonly stale: boolean;
  readonly keyId?: string;
  readonly ciphertext?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly healthz?: string;
  readonly version?: string;
}

/** An API server, as far as plugins see it. */
export interface KubernetesClient {
  do(order: KubernetesOrder): Promise<KubernetesOutcome>;
  end(): Promise<void>;
}

/** Builds the program. Go keeps what it compiled: only the first build takes long. @returns its path */
export function buildKubernetesClient(atEnd: (remove: () => void) => void): string {
  const program = join(makeTemporaryDirectory(atEnd), "apiserver");
  const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], {
    cwd: join(import.meta.dirname, "go-kubernetes"),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`go build failed: ${stderr}`);
  return program;
}

/** Starts the program. It remembers what it decrypted, as an API server does, until it ends. */
export function startKubernetesClient(program: string): KubernetesClient {
  const child = spawn(program, [], { stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const closed = once(child, "close");
  return {
    async do(order) {
      child.stdin.write(`${JSON.stringify(order)}\n`);
      const { done, value } = await lines.next();
      if (done === true) throw new Error(`the client ended before it answered: ${stderr}`);
      return JSON.parse(value);
    },
    async end() {
      child.stdin.end();
      await closed;
    },
  };
}
