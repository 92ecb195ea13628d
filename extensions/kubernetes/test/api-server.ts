/** Kubernetes' KMS v2 client, run as a program that executes commands (go-kubernetes). */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { startLineClient } from "../../../test/support/line-client.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

/** A command for the API server; main.go describes the fields. Bytes are base64. */
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

/** A command's outcome. */
export interface KubernetesOutcome {
  readonly error?: string;
  /** The gRPC code in Go's spelling, such as "NotFound". */
  readonly code?: string;
  readonly data?: string;
  /** Whether the API server would rewrite the object with the current key. */
  readonly stale: boolean;
  readonly keyId?: string;
  readonly ciphertext?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly healthz?: string;
  readonly version?: string;
}

/** The part of an API server that plugins see. */
export interface KubernetesClient {
  do(order: KubernetesOrder): Promise<KubernetesOutcome>;
  end(): Promise<void>;
}

/**
 * Builds the program. Go caches the result, so only the first build takes long.
 *
 * @returns its path
 */
export function buildKubernetesClient(atEnd: (remove: () => void) => void): string {
  const program = join(makeTemporaryDirectory(atEnd), "apiserver");
  const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], {
    cwd: join(import.meta.dirname, "go-kubernetes"),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`go build failed: ${stderr}`);
  return program;
}

/** Starts the program. Like an API server, it caches decrypted keys until it ends. */
export function startKubernetesClient(program: string): KubernetesClient {
  const { ask, end } = startLineClient<KubernetesOrder, KubernetesOutcome>(program);
  return { do: ask, end };
}
