/** `qsp device send` and `stream`: send readings that the device signs. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { IotService, type StreamTelemetryRequestSchema } from "#gen/iot/iot_service_pb.ts";
import type { ApiClient } from "../client.ts";
import { exitCodes, usageError } from "../exit-codes.ts";
import { readByteLines, readData } from "../files.ts";
import type { Verb, VerbInput } from "../verb.ts";
import { type DeviceSigner, withSigner } from "./sign.ts";
import { type DeviceState, deviceOption, findToken, readDevice, takeSequences } from "./state.ts";

const { method } = IotService;
/** Numbers that a stream reserves at a time; each reservation writes the file. */
const sequencesAtOnce = 1000;

export const deviceReadingVerbs: readonly Verb[] = [
  {
    name: "device send",
    operands: ["READING"],
    operandFiles: { READING: "data" },
    options: deviceOption,
    meaning:
      "Sends one signed reading, with a number above all earlier ones. The reading is the text itself, @FILE, or - for\n" +
      "standard input.",
    example: "qsp device send '21.5 °C'",
    run: send,
  },
  {
    name: "device stream",
    operands: ["[FILE]"],
    operandFiles: { FILE: "reads" },
    options: deviceOption,
    meaning:
      "Sends each line of a file, or of standard input, as a reading. Prints one answer for each. The exit code\n" +
      "is 1 if a reading was not verified.",
    example: "printf '21.5\\n21.7\\n' | qsp device stream",
    run: stream,
  },
];

async function send({ operands: [reading = ""], files, output, server }: VerbInput): Promise<number> {
  const path = files.need("device");
  const state = readDevice(path, server.url);
  const telemetry = await readData(reading);
  if (telemetry.length === 0) throw usageError("READING is empty");
  return withSigner(path, state, async (signer) => {
    const { deviceId, nextSequence: sequence } = state;
    takeSequences(path, state, 1);
    const signature = await signer.signReading(sequence, telemetry);
    const request = { deviceId, telemetry, sequence, signature };
    const answer = await asDevice(server, state).ask(method.sendTelemetry, request);
    output.answer(method.sendTelemetry.output, answer, () => describe(sequence, answer));
    return answer.verified ? exitCodes.done : exitCodes.no;
  });
}

async function stream({ operands: [file = "-"], files, output, server }: VerbInput): Promise<number> {
  const path = files.need("device");
  const state = readDevice(path, server.url);
  return withSigner(path, state, async (signer) => {
    let answered = state.nextSequence;
    let areAllVerified = true;
    const requests = signLines(signer, path, state, readByteLines(file));
    for await (const answer of asDevice(server, state).stream(method.streamTelemetry, requests)) {
      const sequence = answered;
      answered += 1;
      areAllVerified &&= answer.verified;
      output.answer(method.streamTelemetry.output, answer, () => describe(sequence, answer));
    }
    return areAllVerified ? exitCodes.done : exitCodes.no;
  });
}

async function* signLines(
  signer: DeviceSigner,
  path: string,
  state: DeviceState,
  lines: AsyncIterable<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<MessageInitShape<typeof StreamTelemetryRequestSchema>> {
  const { deviceId } = state;
  let sequence = state.nextSequence;
  let saved = state;
  for await (const telemetry of lines) {
    if (telemetry.length === 0) continue;
    if (sequence === saved.nextSequence) saved = takeSequences(path, saved, sequencesAtOnce);
    const signature = await signer.signReading(sequence, telemetry);
    yield { reading: { deviceId, telemetry, sequence, signature } };
    sequence += 1;
  }
}

/** Calls with the device's own token if it has one, otherwise with the user's token. */
function asDevice(server: ApiClient, state: DeviceState): ApiClient {
  const token = findToken(state);
  return token === undefined ? server : server.withToken(token);
}

function describe(
  sequence: number,
  { verified, reason }: { readonly verified: boolean; readonly reason: string },
): string {
  return verified ? `reading ${sequence} is verified` : `reading ${sequence} is NOT verified: ${reason}`;
}
