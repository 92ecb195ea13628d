/**
 * Describes a server's services on a separate thread. It takes most of a second, and no call waits for it.
 */
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Example } from "../calls/example.ts";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { findThread } from "../program-files.ts";
import { collectFiles } from "../transcoding/descriptors.ts";
import type { AuthMode } from "./operations.ts";

/** Input of the thread. */
export interface DescriptionTask {
  /** FileDescriptorProtos, each after its imports. */
  readonly files: readonly Uint8Array[];
  /** Full service names, in description order. */
  readonly serviceNames: readonly string[];
  readonly examples: readonly Example[];
  readonly auth: AuthMode;
  /** Profiles of the services, and possibly of other services. */
  readonly profiles: ServiceProfiles;
}

/**
 * A description in both formats. The page that shows it needs only JSON, and YAML takes a third of the time.
 */
export interface DescriptionTexts {
  readonly json: string;
  readonly yaml: Promise<string>;
}

/** A message from the thread; JSON comes first. */
export interface DescriptionText {
  readonly format: keyof DescriptionTexts;
  readonly text: string;
}

/**
 * Describes services on a thread.
 *
 * @param signal stops the thread if the server stops in the meantime
 * @throws the thread's error
 */
export async function describeServices(
  services: readonly DescService[],
  { auth, examples, profiles }: Pick<DescriptionTask, "auth" | "examples" | "profiles">,
  signal: AbortSignal,
): Promise<DescriptionTexts> {
  const task: DescriptionTask = {
    files: await serializeFiles(services),
    serviceNames: services.map(({ typeName }) => typeName),
    examples,
    auth,
    profiles,
  };
  const worker = new Worker(findThread("openapi/describe-thread.ts"), {
    name: "openapi",
    execArgv: [],
    workerData: task,
  });
  // Shutdown does not wait for a description.
  worker.unref();
  const yaml = Promise.withResolvers<string>();
  // The outer promise rejects first, unless other code waits for this one.
  yaml.promise.catch(() => {});
  return new Promise((resolve, reject) => {
    const stop = (): void => void worker.terminate();
    const fail = (error: unknown): void => {
      reject(error);
      yaml.reject(error);
    };
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    worker.on("message", ({ format, text }: DescriptionText) => {
      if (format === "yaml") yaml.resolve(text);
      else resolve({ json: text, yaml: yaml.promise });
    });
    worker.once("error", fail);
    worker.once("exit", (code) => {
      signal.removeEventListener("abort", stop);
      fail(new Error(`the API description thread ended with code ${code}`));
    });
  });
}

/** Serializes one file per turn of the event loop. All files together take some 30 ms. */
async function serializeFiles(services: readonly DescService[]): Promise<Uint8Array[]> {
  const files: Uint8Array[] = [];
  for (const { proto } of collectFiles(services.map((service) => service.file))) {
    files.push(toBinary(FileDescriptorProtoSchema, proto));
    await setImmediate();
  }
  return files;
}
