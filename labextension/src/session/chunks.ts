/**
 * Long markdown in pieces that are drawn one by one.  Pure.
 *
 * While a text grows only its last piece changes: where a piece ends depends on nothing that comes after the line
 * that follows it.
 */

/** A piece is cut at the first good place after so many characters. */
export const PIECE = 3000;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A line that may belong to the paragraph, list, quote or table above it, or that begins what must stay whole. */
const JOINS = /^(?:\s|[-*+>|]|\d+[.)]|\$\$|<|\[)/;

/** The pieces of a text, which together are the text. */
export function pieces(text: string): string[] {
  const found: string[] = [];
  let start = 0;
  let at = 0;
  let fence: string | null = null;
  let wasBlank = false;
  while (at < text.length) {
    const newline = text.indexOf('\n', at);
    const end = newline < 0 ? text.length : newline + 1;
    const line = text.slice(at, end);
    const isBlank = !line.trim();
    if (fence === null && wasBlank && !isBlank && at - start >= PIECE && !JOINS.test(line)) {
      found.push(text.slice(start, at));
      start = at;
    }
    const mark = FENCE.exec(line)?.[1];
    if (fence === null) {
      fence = mark ?? null;
    } else if (mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) {
      fence = null;
    }
    wasBlank = isBlank;
    at = end;
  }
  if (start < text.length) {
    found.push(text.slice(start));
  }
  return found;
}

/** A text cut into pieces of at most so many characters, at line ends where there are any. */
export function slices(text: string, most: number): string[] {
  const found: string[] = [];
  let at = 0;
  while (at < text.length) {
    let end = Math.min(at + most, text.length);
    if (end < text.length) {
      const newline = text.lastIndexOf('\n', end - 1);
      if (newline >= at) {
        end = newline + 1;
      } else if (isHighSurrogate(text, end - 1)) {
        end -= 1;
      }
    }
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

/** The part of a long text that is shown at first: of its end, or of its beginning. */
export function excerpt(text: string, side: 'head' | 'tail', lines: number, characters: number): string {
  if (side === 'head') {
    let end = 0;
    for (let i = 0; i < lines && end < text.length; i++) {
      const newline = text.indexOf('\n', end);
      end = newline < 0 ? text.length : newline + 1;
    }
    end = Math.min(end, characters);
    return text.slice(0, isHighSurrogate(text, end - 1) ? end - 1 : end);
  }
  let start = text.length;
  for (let i = 0; i < lines && start > 0; i++) {
    start = text.lastIndexOf('\n', start - 2) + 1;
  }
  start = Math.max(start, text.length - characters);
  return text.slice(start > 0 && isHighSurrogate(text, start - 1) ? start + 1 : start);
}

function isHighSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xd800 && code <= 0xdbff;
}
