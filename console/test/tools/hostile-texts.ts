/** Texts that break out of a literal, run a program or hide something if they are not escaped. */
export const hostileTexts: readonly string[] = [
  "",
  "plain",
  'it\'s "quoted" `id` $(touch pwned) $HOME !! %s %d {x} \\',
  "\\n \\\" \\' \\u0041 \\x41 \\N{DASH} '''\"\"\" #{x}",
  "';exit 1;'",
  "line\nbreak\r\n\ttab\b\f\v\0",
  "\u001b[31mred\u009b0m\u007f",
  "\u202ereversed\u202c \u2066\u2069 \u2028 \u2029 \ufeff \u00ad",
  "</script><!--",
  "Grüße 日本語 🗝 \u{e0041} \u{10fffd}",
  "__proto__",
  "-d @/etc/passwd",
];

/** A single line with most of them, for fields that reject control characters. */
export const hostileName = 'it\'s "x" `id` $(touch pwned) $HOME \\ \\n \\" %s !! 日本 🗝 \u202e\u2028 -d @x';
