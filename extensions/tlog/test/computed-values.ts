/** Example values that a caller computes from answers. */

import type { ComputedValues } from "../../../test/openapi/computed-values.ts";
import { cosignedNote } from "../examples.ts";
import { formatNote, parseNote } from "../note.ts";
import { witness } from "./witness.ts";

export const computeValues: ComputedValues = {
  [cosignedNote]: async (outcomes) => {
    const { text, signatures } = parseNote(outcomes.get("get-checkpoint")?.bytes ?? new Uint8Array());
    const cosignature = await witness.sign(text, new Date());
    const note = Buffer.from(formatNote({ text, signatures: [...signatures, cosignature] }));
    return { note: note.toString("base64") };
  },
};
