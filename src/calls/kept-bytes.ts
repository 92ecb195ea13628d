/** Keeps the bytes of answers that are given again and again. */
import { type DescMessage, type Message, type MessageShape, toBinary } from "@bufbuild/protobuf";

const kept = new WeakMap<Message, Uint8Array>();

/**
 * Encodes an answer once for all its uses. From then on, nothing may change it.
 *
 * @returns the answer
 */
export function keepBytes<Desc extends DescMessage>(
  schema: Desc,
  answer: MessageShape<Desc>,
): MessageShape<Desc> {
  kept.set(answer, toBinary(schema, answer));
  return answer;
}

/** Returns the kept bytes of an answer; encodes any other answer. */
export function encodeAnswer(schema: DescMessage, answer: Message): Uint8Array {
  return kept.get(answer) ?? toBinary(schema, answer);
}
