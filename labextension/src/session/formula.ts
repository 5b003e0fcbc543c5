/**
 * Whether a text holds a formula.
 *
 * Between dollars stand prices and names of variables as well: those are left as they were written.
 */

const DISPLAYED = /\$\$|\\\(|\\\[|\\begin\{/;

/** No space inside the dollars and nothing of a word after them, nearly as in pandoc; between them a sign or a short name. */
const INLINE = /\$(?! )(?:[A-Za-z]\w?|[^$\n]*[\\^_=+*<>-][^$\n]*)(?<! )\$(?!\w)/;

export function hasFormula(markdown: string): boolean {
  return DISPLAYED.test(markdown) || INLINE.test(markdown);
}
