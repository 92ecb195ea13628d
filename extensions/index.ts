/** The extensions of the program, in display order. Without a line here, nothing of its folder is there. */
import type { Extension } from "../src/extension.ts";
import { kubernetes } from "./kubernetes/extension.ts";

export const extensions: readonly Extension[] = [kubernetes];
