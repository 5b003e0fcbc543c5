/**
 * Which words of a changed line are different, and which lines stand beside each other.
 */
import { Hunk, Line, Span } from './patch';

/** Longer lines are not compared word by word. */
const LONGEST = 400;
/** Steps of one comparison; a line that needs more is marked from its first to its last difference. */
const STEPS = 10_000;
/** Compared pairs of one hunk. */
const PAIRS = 200;
/** Lines that share less than this part of their text are two lines, not one that was changed. */
const ALIKE = 0.35;

/** A line of the old file beside its line of the new one; a context line is its own partner. */
export interface Pair {
  readonly left: Line | null;
  readonly right: Line | null;
}

/** The lines of a hunk as two columns. */
export function sideBySide(hunk: Hunk): Pair[] {
  const pairs: Pair[] = [];
  const { lines } = hunk;
  for (let at = 0; at < lines.length; ) {
    if (lines[at].kind === 'context') {
      pairs.push({ left: lines[at], right: lines[at] });
      at += 1;
      continue;
    }
    const { removed, added, end } = run(lines, at);
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      pairs.push({ left: removed[i] ?? null, right: added[i] ?? null });
    }
    at = end;
  }
  return pairs;
}

const known = new WeakMap<Hunk, ReadonlyMap<Line, readonly Span[]>>();

/** What is different in the lines of a hunk that were changed rather than replaced. */
export function wordMarks(hunk: Hunk): ReadonlyMap<Line, readonly Span[]> {
  let marks = known.get(hunk);
  if (!marks) {
    marks = findMarks(hunk.lines);
    known.set(hunk, marks);
  }
  return marks;
}

function findMarks(lines: readonly Line[]): Map<Line, readonly Span[]> {
  const marks = new Map<Line, readonly Span[]>();
  let pairs = 0;
  for (let at = 0; at < lines.length && pairs < PAIRS; ) {
    if (lines[at].kind === 'context') {
      at += 1;
      continue;
    }
    const { removed, added, end } = run(lines, at);
    for (let i = 0; i < Math.min(removed.length, added.length) && pairs < PAIRS; i++) {
      pairs += 1;
      const found = changedWords(removed[i].text, added[i].text);
      if (found) {
        marks.set(removed[i], found[0]);
        marks.set(added[i], found[1]);
      }
    }
    at = end;
  }
  return marks;
}

/** The removed lines from `start` on, and the added ones that follow them. */
function run(lines: readonly Line[], start: number): { removed: Line[]; added: Line[]; end: number } {
  let end = start;
  const take = (kind: Line['kind']): Line[] => {
    const from = end;
    while (end < lines.length && lines[end].kind === kind) {
      end += 1;
    }
    return lines.slice(from, end);
  };
  const removed = take('removed');
  const added = take('added');
  return { removed, added, end };
}

/** The different parts of two lines; `null` when they are too long, too different, or the same. */
export function changedWords(before: string, after: string): [Span[], Span[]] | null {
  if (before.length > LONGEST || after.length > LONGEST || before === after) {
    return null;
  }
  const a = tokens(before);
  const b = tokens(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) {
    head += 1;
  }
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  ) {
    tail += 1;
  }
  const middleA = a.slice(head, a.length - tail);
  const middleB = b.slice(head, b.length - tail);
  const [keptA, keptB] = common(middleA, middleB);
  const shift = (flags: boolean[], all: string[]): boolean[] => [
    ...new Array<boolean>(head).fill(true),
    ...flags,
    ...new Array<boolean>(all.length - head - flags.length).fill(true)
  ];
  const left = spans(a, shift(keptA, a));
  const right = spans(b, shift(keptB, b));
  const shared = before.length - size(left);
  const solid = Math.max(before.trim().length, after.trim().length, 1);
  return shared / solid < ALIKE ? null : [left, right];
}

function tokens(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** Which tokens belong to a longest common sequence. */
function common(a: string[], b: string[]): [boolean[], boolean[]] {
  const keptA = new Array<boolean>(a.length).fill(false);
  const keptB = new Array<boolean>(b.length).fill(false);
  const width = b.length + 1;
  if (a.length * b.length > STEPS) {
    return [keptA, keptB];
  }
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      keptA[i++] = keptB[j++] = true;
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
      i += 1;
    } else {
      j += 1;
    }
  }
  return [keptA, keptB];
}

/** The stretches of text whose tokens were not kept. */
function spans(all: string[], kept: boolean[]): Span[] {
  const found: [number, number][] = [];
  let at = 0;
  all.forEach((token, i) => {
    const end = at + token.length;
    const last = found[found.length - 1];
    if (!kept[i] && last && last[1] === at) {
      last[1] = end;
    } else if (!kept[i]) {
      found.push([at, end]);
    }
    at = end;
  });
  return found;
}

function size(found: Span[]): number {
  return found.reduce((sum, [from, to]) => sum + to - from, 0);
}
