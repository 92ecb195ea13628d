/** Describes the services of a server on a separate thread. It takes most of a second, and no call waits for it. */
import { Worker } from "node:worker_threads";
import { create, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { findThread } from "../program-files.ts";
import type { Example } from "../protocol/example.ts";
import type { ServiceProfiles } from "../protocol/service-profile.ts";
import { collectFiles } from "../transcoding/descriptors.ts";
import type { AuthMode } from "./operations.ts";

/** The input of the thread. Descriptors refer to each other, so they are sent as a FileDescriptorSet. */
export interface DescriptionTask {
  readonly fileDescriptorSet: Uint8Array;
  /** Full names, in the order of the description. */
  readonly serviceNames: readonly string[];
  readonly examples: readonly Example[];
  readonly auth: AuthMode;
  /** Those of the services, and possibly of others. */
  readonly profiles: ServiceProfiles;
}

/** A description in both formats. */
export interface DescriptionTexts {
  readonly json: string;
  readonly yaml: string;
}

/**
 * Describes services.
 *
 * @param signal ends the thread if the server stops in the meantime.
 * @throws the error of the thread
 */
export function describeServices(
  services: readonly DescService[],
  { auth, examples, profiles }: Pick<DescriptionTask, "auth" | "examples" | "profiles">,
  signal: AbortSignal,
): Promise<DescriptionTexts> {
  const file = collectFiles(services.map((service) => service.file)).map(({ proto }) => proto);
  const task: DescriptionTask = {
    fileDescriptorSet: toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file })),
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
  // A server that stops does not wait for a description.
  worker.unref();
  return new Promise((resolve, reject) => {
    const stop = (): void => void worker.terminate();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) => {
      signal.removeEventListener("abort", stop);
      reject(new Error(`the thread that describes the API ended with ${code}`));
    });
  });
}
