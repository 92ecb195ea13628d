/** Colours an element and its content. The style sheet makes the shades of the hue for both themes. */
export function colour(hue: number | undefined) {
  return hue === undefined ? {} : { "data-coloured": true, style: { "--hue": `${hue}` } };
}
