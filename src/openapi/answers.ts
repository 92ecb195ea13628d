/** Answers of a real server to the examples: `npm run answers` records them in answers.json. */
import type { Json } from "../protocol/example.ts";
import recorded from "./answers.json" with { type: "json" };

/** Recorded bodies, by the names of the examples. A body that is not JSON is a text; bytes are in base64. */
export const answers: Readonly<Record<string, Json>> = recorded;
