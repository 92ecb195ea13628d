/** Step fields. */
import type { Field, StoryState } from "../story-step.ts";
import { Choice, ofNumber, TextArea, TextField } from "./fields.tsx";

export function textField(label: string, initial: Field["initial"], autocomplete = "off"): Field {
  return {
    initial,
    view: (bound) => <TextField label={label} attributes={{ type: "text", autocomplete }} {...bound} />,
  };
}

/** A multi-line text. */
export function areaField(label: string, rows: number, initial: string): Field {
  return { initial, view: (bound) => <TextArea label={label} rows={rows} {...bound} /> };
}

/** An integer of 0 or more. */
export function numberField(label: string, initial: string): Field {
  return { initial, view: (bound) => <TextField label={label} attributes={ofNumber} {...bound} /> };
}

/** One of several options, which may depend on the story's state. */
export function choiceField(
  label: string,
  initial: string,
  options: readonly string[] | ((story: StoryState) => readonly string[]),
): Field {
  return {
    initial,
    view: (bound, story) => (
      <Choice label={label} options={typeof options === "function" ? options(story) : options} {...bound} />
    ),
  };
}
