/** Example values that a caller computes from answers. */

import type { ComputedValues } from "../../../test/openapi/computed-values.ts";
import { cosignedNote } from "../examples.ts";
import { cosignNote } from "./witness.ts";

export const computeValues: ComputedValues = {
  [cosignedNote]: async (outcomes) => {
    const note = await cosignNote(outcomes.get("get-checkpoint")?.bytes ?? new Uint8Array());
    return { note: note.toString("base64") };
  },
};
