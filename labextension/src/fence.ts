/**
 * Code as it stands in a message.  Pure.
 */

/** A fence that is longer than any in the text. */
export function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map(run => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
