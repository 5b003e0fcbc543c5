/**
 * Whether a text holds a formula.
 *
 * Between dollars stand prices and names of variables as well: those are left as they were written.
 */

const DISPLAYED = /\$\$|\\\(|\\\[|\\begin\{/;

/** No space inside the dollars and no number or word after them, as in pandoc; and more than a word between them. */
const INLINE = /\$(?! )(?:[A-Za-z]\w?|[^$\n]*[\\^_=+*<>-][^$\n]*)(?<! )\$(?!\w)/;

export function hasFormula(markdown: string): boolean {
  return DISPLAYED.test(markdown) || INLINE.test(markdown);
}
