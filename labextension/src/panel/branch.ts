/**
 * A branch name out of what people type.
 */

/** A branch name for what was typed: as it is, or, when it is a sentence, made from its words. */
export function branchFor(text: string): string {
  const name = text.trim();
  if (!/\s/.test(name)) {
    return name;
  }
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^\p{L}\p{N}/]+/gu, '-')
    .replace(/-*\/-*/g, '/')
    .slice(0, 48)
    .replace(/^[-/]+|[-/]+$/g, '');
}
