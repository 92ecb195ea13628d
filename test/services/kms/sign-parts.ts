/** Messages of SignStream. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import type { SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { streamOf } from "../../support/streams.ts";

export type SignPart = MessageInitShape<typeof SignStreamRequestSchema>;

export const header = (keyId: string, context = new Uint8Array()): SignPart => ({
  part: { case: "header", value: { keyId, context } },
});
export const chunk = (value: Uint8Array<ArrayBuffer>): SignPart => ({ part: { case: "chunk", value } });

/** A complete stream. */
export const signParts = (keyId: string, ...chunks: Uint8Array<ArrayBuffer>[]) =>
  streamOf(header(keyId), ...chunks.map(chunk));

/** Sends parts, then stalls without ending until the test has finished. */
export async function* stalled(...parts: SignPart[]): AsyncGenerator<SignPart> {
  yield* parts;
  await new Promise<void>((resolve) => onTestFinished(() => resolve()));
}
