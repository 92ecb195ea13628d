/** `qsp device send` and `stream`: send readings signed by the device. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { IotService, type StreamTelemetryRequestSchema } from "#gen/iot/iot_service_pb.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { CliError, exitCodes, usageError } from "../../exit-codes.ts";
import { readByteLines, readData } from "../../files/read.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";
import { deviceOption, type OpenDevice, withDevice } from "./state.ts";

const { method } = IotService;
/** Sequence numbers reserved at a time; each reservation writes the file. */
const sequencesAtOnce = 1000;

export const deviceReadingVerbs: readonly Verb[] = [
  declareVerb({
    line: "device send READING",
    operandFiles: { READING: "data" },
    options: deviceOption,
    meaning:
      "Sends one signed reading with the next sequence number. The reading is the text itself, @FILE, or - for\n" +
      "standard input.",
    example: "qsp device send '21.5 °C'",
    run: send,
  }),
  declareVerb({
    line: "device stream [FILE]",
    operandFiles: { FILE: "reads" },
    options: deviceOption,
    meaning:
      "Sends each line of a file, or of standard input, as a reading. Prints one answer per reading. The exit code\n" +
      "is 1 if the server could not verify a reading.",
    example: "printf '21.5\\n21.7\\n' | qsp device stream",
    run: stream,
  }),
];

function send(input: VerbInput): Promise<number> {
  const { operands, output, server } = input;
  const [reading = ""] = operands;
  return withDevice(input, async (device) => {
    const telemetry = await readData(reading);
    if (telemetry.length === 0) throw usageError("READING is empty");
    const { deviceId } = device.state;
    const sequence = device.takeSequences(1);
    const signature = await device.signReading(sequence, telemetry);
    const request = { deviceId, telemetry, sequence, signature };
    const answer = await asDevice(server, device).ask(method.sendTelemetry, request);
    const text = () => describe(sequence, answer);
    return output.answer(method.sendTelemetry.output, answer, text, answer.verified);
  });
}

function stream(input: VerbInput): Promise<number> {
  const { operands, output, server } = input;
  const [file = "-"] = operands;
  return withDevice(input, async (device) => {
    /** The numbers of the readings without an answer. */
    const sent: number[] = [];
    let areAllVerified = true;
    let isSent = false;
    async function* requests() {
      yield* signLines(device, readByteLines(file), sent);
      isSent = true;
    }
    for await (const answer of asDevice(server, device).stream(method.streamTelemetry, requests())) {
      areAllVerified &&= answer.verified;
      const sequence = sent.shift() ?? 0;
      const text = () => describe(sequence, answer);
      output.answer(method.streamTelemetry.output, answer, text, areAllVerified);
    }
    if (!isSent || sent.length > 0)
      throw new CliError(
        exitCodes.unreachable,
        "the server ended the stream before it answered all readings",
      );
    return areAllVerified ? exitCodes.done : exitCodes.no;
  });
}

async function* signLines(
  device: OpenDevice,
  lines: AsyncIterable<Uint8Array<ArrayBuffer>>,
  sent: number[],
): AsyncGenerator<MessageInitShape<typeof StreamTelemetryRequestSchema>> {
  const { deviceId } = device.state;
  let [sequence, reservedTo] = [0, 0];
  for await (const telemetry of lines) {
    if (telemetry.length === 0) continue;
    if (sequence === reservedTo) {
      sequence = device.takeSequences(sequencesAtOnce);
      reservedTo = sequence + sequencesAtOnce;
    }
    const signature = await device.signReading(sequence, telemetry);
    sent.push(sequence);
    yield { reading: { deviceId, telemetry, sequence, signature } };
    sequence += 1;
  }
}

/** Calls with the device's own token while it is valid, otherwise with the user's token. */
function asDevice(server: ApiClient, { state: { token, tokenExpiresAt } }: OpenDevice): ApiClient {
  const isValid = tokenExpiresAt !== undefined && new Date(tokenExpiresAt) > new Date();
  return isValid && token !== undefined ? server.withToken(token) : server;
}

function describe(
  sequence: number,
  { verified, reason }: { readonly verified: boolean; readonly reason: string },
): string {
  return verified ? `reading ${sequence} is verified` : `reading ${sequence} is NOT verified: ${reason}`;
}
